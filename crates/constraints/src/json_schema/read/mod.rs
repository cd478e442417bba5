//! The reader: turns a schema into a formula, or rejects a keyword that cannot be honored.
//!
//! The reader traverses the schema once and follows references immediately. The formula of every
//! finished schema is kept. A reference to an unfinished schema is recursive and becomes
//! [`Leaf::Later`].

mod arrays;
mod evaluated;
mod logic;
mod objects;
mod scalars;
mod values;

use std::time::{Duration, Instant};

use self::evaluated::Evaluated;
use super::document::{Document, Facts, Scope};
use super::draft::Draft;
use super::formula::{Formula, Formulas, Leaf};
use super::json::{Json, Members};
use super::keywords::{self, Keyword};
use super::note::{Note, Treatment};
use super::number::Notation;
use super::options::{JsonOptions, Numbers, Unknown, Whitespace};
use super::{MAX_DEPTH, MAX_HEIGHT, Schema};
use crate::json_pointer::push;
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

/// Most bytes of pointers and of sets of evaluated parts kept during reading. Both grow with the
/// depth and may be much larger than the schema.
const MAX_HELD: usize = 256 << 20;

/// Longest time of reading a schema before the limits are known.
const TIME: Duration = Duration::from_secs(30);

/// The time bound of reading.
pub(super) enum Clock<'a> {
    /// The end of the [longest time](TIME).
    Until(Instant),
    /// The limits of a request, while a constraint is lowered.
    Of(&'a Meter<'a>),
}

impl Clock<'_> {
    /// The clock for reading a schema before the limits are known.
    pub(super) fn start() -> Self {
        Self::Until(Instant::now() + TIME)
    }

    fn time(&self) -> Result<()> {
        match self {
            Self::Until(end) if Instant::now() > *end => Err(Error::limit(Limit::Time(TIME))),
            Self::Until(_) => Ok(()),
            Self::Of(meter) => meter.time(),
        }
    }
}

/// Most characters of white space between two tokens, or of indentation for one level.
pub(crate) const MAX_SPACES: usize = 64;

/// Reads `root`.
pub(super) fn read(root: &Json, options: &JsonOptions, clock: Clock<'_>) -> Result<Schema> {
    if let Whitespace::Pretty(spaces) | Whitespace::Flexible(spaces) = options.whitespace
        && spaces > MAX_SPACES
    {
        return Err(Error::input(format!("white space of {spaces} characters: {MAX_SPACES} are the most")));
    }
    options.separators.check(options.whitespace)?;
    let facts = Facts::default();
    let [unevaluated, _] = facts.mentions(root);
    let document = Document::new(root, &facts);
    let mut reader = Reader {
        tracks: document.draft >= Draft::D2019 && unevaluated,
        document,
        options,
        formulas: Formulas::new(),
        origins: FastMap::default(),
        notes: Vec::new(),
        at: String::new(),
        same_value: Vec::new(),
        met: FastMap::default(),
        later: Vec::new(),
        recursive: Vec::new(),
        depth: 0,
        held: 0,
        clock,
        is_provisional: false,
    };
    if let Some(named) = root.get("$schema")
        && !reader.document.named
    {
        let reason = format!(
            "{} is no draft that is known; the schema is read as {}",
            named.text(),
            reader.document.draft
        );
        reader.note("$schema", Treatment::Ignored(reason));
    }
    let integers = match options.numbers {
        Numbers::Any if reader.document.draft >= Draft::D6 => Notation::Wide,
        _ => Notation::Digits,
    };
    let root = reader.schema(root)?.formula;
    let Reader { formulas, origins, notes, later, met, mut recursive, is_provisional, .. } = reader;
    recursive.sort_unstable();
    recursive.dedup();
    let later = later.into_iter().map(|location| match met.get(&location) {
        Some(Met::Done(read)) => read.formula,
        _ => Formula::FALSE,
    });
    Ok(Schema {
        later: later.collect(),
        formulas,
        root,
        origins,
        notes,
        recursive,
        options: options.clone(),
        integers,
        free: None,
        is_unordered: false,
        is_styled: false,
        is_provisional,
    })
}

/// The result of reading a schema.
#[derive(Clone)]
struct Read {
    formula: Formula,
    /// The evaluated parts, for an enclosing `unevaluatedProperties` or `unevaluatedItems`.
    evaluated: Evaluated,
}

/// A schema by its address, and the scope of its reading.
type SchemaLocation = (*const Json, Scope);

/// The state of a visited schema.
enum Met {
    /// Being read; with its index in the list of later ones, after a first reference.
    Open(Option<usize>),
    Done(Read),
}

/// The reader's position in the schema, and its results.
struct Reader<'a> {
    document: Document<'a>,
    options: &'a JsonOptions,
    formulas: Formulas,
    /// For each claim the JSON pointer to its first occurrence.
    origins: FastMap<Formula, String>,
    notes: Vec<Note>,
    /// Whether evaluated parts are tracked: only if the schema has a keyword that needs them.
    tracks: bool,
    /// JSON pointer to the current schema.
    at: String,
    /// The open schemas that apply to the same value as the innermost one.
    same_value: Vec<SchemaLocation>,
    met: FastMap<SchemaLocation, Met>,
    /// The schemas of [`Leaf::Later`].
    later: Vec<SchemaLocation>,
    /// Pointers of the recursive schemas.
    recursive: Vec<String>,
    depth: usize,
    /// The bytes kept, at most [`MAX_HELD`].
    held: usize,
    clock: Clock<'a>,
    /// Whether matching names against patterns was deferred, see [`Schema::settled`].
    is_provisional: bool,
}

/// The claims of the keywords of one schema, gathered one by one.
struct Gathered {
    claims: Vec<Formula>,
    evaluated: Evaluated,
}

impl<'a> Reader<'a> {
    /// The schema at `self.at`.
    fn schema(&mut self, schema: &'a Json) -> Result<Read> {
        self.hold(self.at.len())?;
        let location: SchemaLocation = (std::ptr::from_ref(schema), self.document.scope());
        match self.met.get(&location) {
            None => {}
            Some(Met::Done(read)) => {
                let read = read.clone();
                self.hold(read.evaluated.bytes())?;
                return Ok(read);
            }
            Some(Met::Open(_)) if self.same_value.contains(&location) => {
                return Err(self.error(
                    "the references lead back to this place without any property or item in between",
                ));
            }
            Some(&Met::Open(known)) => {
                let number = known.unwrap_or(self.later.len());
                if known.is_none() {
                    self.later.push(location);
                    self.met.insert(location, Met::Open(Some(number)));
                }
                self.recursive.push(self.at.clone());
                let formula = self.formulas.leaf(Leaf::Later(number as u32));
                return Ok(Read { formula, evaluated: Evaluated::unknown() });
            }
        }
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("schemas are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        self.met.insert(location, Met::Open(None));
        self.same_value.push(location);
        let outside = self.document.enter(&self.at, schema);
        self.hold(outside.bytes())?;
        let read = match schema {
            Json::Boolean(value) => {
                Ok(Read { formula: Formula::constant(*value), evaluated: Evaluated::default() })
            }
            Json::Object(map) => self.object(map),
            _ => Err(self.error("a schema is an object or a boolean")),
        };
        self.document.leave(outside);
        self.same_value.pop();
        self.depth -= 1;
        let read = read?;
        if self.formulas.height(read.formula) > MAX_HEIGHT {
            return Err(
                self.error("the schemas that it refers to are nested too deep, each within the one before")
            );
        }
        self.hold(read.evaluated.bytes())?;
        self.met.insert(location, Met::Done(read.clone()));
        Ok(read)
    }

    /// Adds to the bytes kept; an error if the bytes or the time exceed their limit.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held = self.held.saturating_add(bytes);
        if self.held > MAX_HELD {
            return Err(Error::schema(
                "",
                format!(
                    "its names and identifiers, repeated in every place below them, take more than {MAX_HELD} bytes; shorten them, or split the schema"
                ),
            ));
        }
        self.clock.time().map_err(|error| error.at(|| self.at.clone()))
    }

    /// Reads the schema at `tokens` below the current one, for the same value.
    fn beside(&mut self, tokens: &[&str], schema: &'a Json) -> Result<Read> {
        let end = self.at.len();
        tokens.iter().for_each(|token| push(&mut self.at, token));
        let read = self.schema(schema);
        self.at.truncate(end);
        read
    }

    /// Reads the schema at `tokens` below the current one, for a part of the value.
    fn below(&mut self, tokens: &[&str], schema: &'a Json) -> Result<Formula> {
        let same_value = std::mem::take(&mut self.same_value);
        let read = self.beside(tokens, schema);
        self.same_value = same_value;
        read.map(|read| read.formula)
    }

    fn object(&mut self, map: &'a Members) -> Result<Read> {
        self.known(map)?;
        let mut gathered = Gathered { claims: Vec::new(), evaluated: Evaluated::default() };
        let draft = self.document.draft;
        if map.contains_key("$ref") && draft <= Draft::D7 {
            let is_read =
                |name: &str| ["$ref", "$schema"].contains(&name) || keywords::holds_definitions(name);
            for name in
                map.keys().filter(|name| !is_read(name) && keywords::of(name, draft) == Keyword::Honored)
            {
                self.note(name, Treatment::Ignored("beside `$ref`, drafts up to 7 ignore it".into()));
            }
            self.references(map, &mut gathered)?;
        } else {
            self.references(map, &mut gathered)?;
            self.types(map, &mut gathered)?;
            self.values(map, &mut gathered)?;
            self.numbers(map, &mut gathered)?;
            self.strings(map, &mut gathered)?;
            self.properties(map, &mut gathered)?;
            self.items(map, &mut gathered)?;
            self.logic(map, &mut gathered)?;
            self.unevaluated(map, &mut gathered)?;
        }
        let formula = self.formulas.and(gathered.claims);
        Ok(Read { formula, evaluated: gathered.evaluated })
    }

    /// Rejects unknown keywords if the options require it, and notes keywords without effect.
    fn known(&mut self, map: &Members) -> Result<()> {
        let Document { draft, named, .. } = self.document;
        for name in map.keys() {
            match keywords::of(name, draft) {
                Keyword::Honored if name == "definitions" && draft >= Draft::D2019 && !named => {
                    let reason = "as `$defs`: drafts up to 7 call it so";
                    self.note(name, Treatment::Read(reason.to_owned()));
                }
                Keyword::Honored | Keyword::Annotation => {}
                Keyword::Foreign if keywords::holds_definitions(name) => {}
                Keyword::Foreign => {
                    let reason = match named {
                        true => format!("{draft}, which `$schema` names, does not have it"),
                        false => format!(
                            "another draft has it, and the schema is read as {draft}; name the draft with `$schema`"
                        ),
                    };
                    self.note(name, Treatment::Ignored(reason));
                }
                Keyword::Unknown if self.options.unknown == Unknown::Ignore => {
                    let mut reason = "it is no keyword of JSON Schema".to_owned();
                    // Only for the first notes, because a hostile schema may have many.
                    let nearest = (self.notes.len() < 64).then(|| keywords::nearest(name)).flatten();
                    if let Some(nearest) = nearest {
                        reason += &format!("; did you mean `{nearest}`?");
                    }
                    self.note(name, Treatment::Ignored(reason));
                }
                Keyword::Unknown => {
                    let advice = match keywords::nearest(name) {
                        Some(nearest) => format!("did you mean `{nearest}`?"),
                        None => "names of extensions begin with `x-`; or remove it".to_owned(),
                    };
                    return Err(
                        self.error_at(name, format!("`{name}` is not a keyword of JSON Schema; {advice}"))
                    );
                }
            }
        }
        Ok(())
    }

    /// The value of a keyword, if the draft has it.
    fn keyword(&self, map: &'a Members, name: &str) -> Option<&'a Json> {
        let value = map.get(name)?;
        (keywords::of(name, self.document.draft) == Keyword::Honored).then_some(value)
    }

    fn references(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = self.keyword(map, name) else { continue };
            let Some(reference) = reference.as_str() else {
                return Err(self.error_at(name, "a reference is a string"));
            };
            let target = if name == "$ref" {
                self.document.resolve(reference)
            } else {
                self.document.resolve_dynamic(reference)
            };
            let target = target.map_err(|reason| self.error_at(name, reason))?;
            let here = std::mem::replace(&mut self.at, target.pointer);
            let outside = self.document.jump(&self.at);
            self.hold(outside.bytes())?;
            let read = self.schema(target.schema);
            self.document.leave(outside);
            self.at = here;
            let read = read?;
            self.claim(gathered, &[name], read.formula);
            gathered.evaluated.extend(read.evaluated);
        }
        Ok(())
    }

    /// A count such as `minLength`.
    fn count(&self, map: &'a Members, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.keyword(map, name) else { return Ok(None) };
        match value.as_count() {
            Some(count) => Ok(Some(count)),
            None => Err(self.other_than(name, "a whole number from 0 on", value)),
        }
    }

    /// The error of a keyword with the value `found` instead of `what`.
    fn other_than(&self, name: &str, what: &str, found: &Json) -> Error {
        const MAX: usize = 40;
        let found = match found {
            Json::Array(items) if items.is_empty() => "an empty list".to_owned(),
            Json::Array(_) => "a list".to_owned(),
            Json::Object(_) => "an object".to_owned(),
            Json::String(text) if text.chars().nth(MAX).is_some() => "a string".to_owned(),
            scalar => scalar.text(),
        };
        self.error_at(name, format!("`{name}` is {what}, not {found}"))
    }

    fn note(&mut self, name: &str, treatment: Treatment) {
        let mut pointer = self.at.clone();
        if !name.is_empty() {
            push(&mut pointer, name);
        }
        self.notes.push(Note { pointer, treatment });
    }

    /// Adds a claim from `tokens` below the current schema.
    fn claim(&mut self, gathered: &mut Gathered, tokens: &[&str], claim: Formula) {
        if claim != Formula::TRUE {
            self.origin(claim, tokens);
            gathered.claims.push(claim);
        }
    }

    /// Records the first occurrence of a claim.
    fn origin(&mut self, claim: Formula, tokens: &[&str]) {
        let at = &self.at;
        self.origins.entry(claim).or_insert_with(|| {
            let more: usize = tokens.iter().map(|token| 1 + token.len()).sum();
            let mut pointer = String::with_capacity(at.len() + more);
            pointer.push_str(at);
            tokens.iter().for_each(|token| push(&mut pointer, token));
            pointer
        });
    }

    fn error(&self, reason: impl Into<String>) -> Error {
        Error::schema(self.at.clone(), reason)
    }

    fn error_at(&self, name: &str, reason: impl Into<String>) -> Error {
        self.error_below(&[name], reason)
    }

    fn error_below(&self, tokens: &[&str], reason: impl Into<String>) -> Error {
        let mut pointer = self.at.clone();
        tokens.iter().for_each(|token| push(&mut pointer, token));
        Error::schema(pointer, reason)
    }
}
