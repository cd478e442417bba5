//! Which characters may be read at a place of a walked table, and how many of them, whichever they are.
//!
//! Behind its first character a token of whole characters mostly stays where that led to, as in a string, a name or free text,
//! or goes on from there by one state for each character, as in counted text. So characters are followed there, instead of tokens: those that lead where most
//! of the vocabulary does are *within* the run, those that lead nowhere all along it end it, and the others leave it *open*. Tokens
//! without an open character are known by this; the others are read.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::rows;
use super::stack::{Stacks, Top};
use super::steps::{Farthest, KnownStep, Steps, add_farthest, no_farthest, tails, widen};
use super::{Left, Near, RowPosition, StateId, TableParts, TokenReading};
use crate::automaton::{Differences, FastMap};
use crate::vocabulary::{
    ANY_LENGTH, CONTINUATION, CharacterSet, Characters, LENGTH_CLASSES, LONGEST, LengthClass, Spelled, TAILS,
    Vocabulary,
};

/// The most states of which runs are known at a time.
const MOST_RUNS: usize = 128;

/// Fewer steps than this are not followed at once.
const WORTH_AT_ONCE: usize = 4;

/// Where no more nodes of the trie begin with a byte that is alive, all of them are read.
const FEW_NODES: usize = 768;

/// Where no more tokens begin with the characters that lead to a place, all of them are read.
const FEW_TOKENS: usize = 512;

/// A place reads this part of the characters at least, by the tokens that have them, or tokens are read there.
const BROAD: usize = 8;

/// So many times as many tokens begin with the characters of a run as it has open ones, or all of them are read.
const PER_OPEN: usize = 16;

/// A run has at most this part of the characters as exceptions.
const MOST_EXCEPT: usize = 3;

/// Where no more characters lead to a place, it is looked at beside a run before one of its own is looked for.
const FEW_CHARACTERS: usize = 4;

/// The most states to which the beginnings of a character may lead.
const MOST_STATES: usize = 4;

/// Which tokens may follow, of those that begin with some characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CharacterRun {
    /// Those that are spelled in this way may follow, and longer ones as far as it reaches.
    pub(crate) spelled: Spelled,
    /// How many characters of a rest may be within it, all of them where it stays; where that is not known, tokens with more than are
    /// told apart are to be read.
    pub(crate) reach: Option<usize>,
    /// Those whose first other character is one of these are to be read; all others may not follow.
    pub(crate) open: CharacterSet,
    /// Those of them that lead to the same place wherever in the run they come; none where it is not known how far it reaches.
    closing: CharacterSet,
    /// The state in which it stays, if there is one.
    stays: Option<StateId>,
    /// Those of its first characters that lead to where it begins.
    pub(crate) own: [CharacterSet; 2],
    /// Those that lead to places of their own, from which most characters lead as from where it stays.
    pub(crate) beside: [CharacterSet; 2],
    /// Those that other characters begin with too, which lead nowhere.
    pub(crate) lacking: [CharacterSet; 2],
}

impl CharacterRun {
    /// Where it stays, if it does.
    pub(crate) fn near(&self) -> Option<Near> {
        self.stays.map(|stays| Near::of(stays, self.spelled.within))
    }

    /// A beginning of the run, of which an open character leads to the same place as of all its own others, if it does.
    pub(crate) fn begun(&self, open: u8) -> Option<([u8; 2], usize)> {
        let [bare, spaced] = self.own.map(|set| set.and(CharacterSet::ASCII).bytes().next());
        let bare = || bare.map(|byte| ([byte, 0], 1));
        let spaced = || spaced.map(|byte| ([b' ', byte], 2));
        if self.closing.contains(open) { bare().or_else(spaced) } else { None }
    }
}

/// What is known without reading tokens.
#[derive(Debug, Default)]
pub(crate) struct CharacterRuns {
    pub(crate) runs: Vec<CharacterRun>,
    /// Tokens with these first characters, without a space before them and with one, are to be read; with all others they may not follow.
    pub(crate) read: [CharacterSet; 2],
}

/// How characters are read by the columns of a table.
pub(crate) struct Alphabet {
    /// The columns that a character begins with, and these characters.
    columns: Vec<(u32, CharacterSet)>,
    wide: Vec<Wide>,
    /// What the vocabulary has of the characters of each column.
    weighed: OnceLock<Weighed>,
    known: Mutex<Known>,
}

/// What a vocabulary has of the characters of columns.
struct Weighed {
    /// The columns, and how many nodes of the trie tokens have that begin with their characters.
    nodes: Vec<(u32, u32)>,
    columns: Vec<Column>,
    /// The weights of all columns.
    weight: usize,
}

/// Characters beyond ASCII.
struct Wide {
    first: CharacterSet,
    /// The bytes at each place behind the first.
    behind: Vec<Bytes>,
}

/// The bytes of a range.
#[derive(Clone)]
struct Bytes {
    first: u8,
    last: u8,
    columns: Vec<u32>,
}

/// What was found before, and holds whatever is on the stack.
#[derive(Default)]
struct Known {
    /// By state: the runs there, where a token may end in all of some states.
    runs: FastMap<u32, (Arc<CharacterRuns>, Farthest)>,
    /// Where most of the vocabulary leads from a state.
    steps: Steps,
}

/// A column of the table with the characters that begin with it.
struct Column {
    column: usize,
    set: CharacterSet,
    /// How many tokens have them in their rests.
    weight: usize,
}

impl Alphabet {
    pub(super) fn new(column_of: &[u32; 256]) -> Self {
        let bytes = |(first, last): (u8, u8)| {
            let mut columns: Vec<u32> = (first..=last).map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            Bytes { first, last, columns }
        };
        let mut columns: Vec<(u32, CharacterSet)> = Vec::new();
        let mut place_of = vec![None; column_of.iter().max().map_or(0, |&most| most as usize + 1)];
        for byte in CharacterSet::CHARACTERS.bytes() {
            let column = column_of[byte as usize];
            let place = *place_of[column as usize].get_or_insert_with(|| {
                columns.push((column, CharacterSet::default()));
                columns.len() - 1
            });
            columns[place].1.insert(byte);
        }
        let wide = |class: &LengthClass| Wide {
            first: CharacterSet::of(class.first..=class.last),
            behind: (1..class.length)
                .map(|at| bytes(if at == 1 { class.second } else { CONTINUATION }))
                .collect(),
        };
        let mut all: Vec<Wide> = Vec::new();
        for wide in LENGTH_CLASSES.iter().map(wide) {
            let is_same = |known: &&mut Wide| {
                let columns = known.behind.iter().map(|bytes| &bytes.columns);
                columns.eq(wide.behind.iter().map(|bytes| &bytes.columns))
            };
            match all.iter_mut().find(is_same) {
                Some(known) => known.first = known.first.or(wide.first),
                None => all.push(wide),
            }
        }
        Self { columns, wide: all, weighed: OnceLock::new(), known: Mutex::default() }
    }

    /// What the vocabulary has of the characters of each column.
    fn weighed(&self, vocabulary: &Vocabulary) -> &Weighed {
        self.weighed.get_or_init(|| {
            let characters = vocabulary.characters();
            let mut nodes_of = [0; 256];
            for (byte, nodes) in vocabulary.trie().by_first_byte() {
                nodes_of[byte as usize] = nodes.len() as u32;
            }
            let nodes = |set: CharacterSet| set.bytes().map(|byte| nodes_of[byte as usize]).sum();
            let nodes = self.columns.iter().map(|&(column, set)| (column, nodes(set))).collect();
            let weigh = |set| characters.count_rest(set);
            let columns = self.columns.iter();
            let columns: Vec<Column> = columns
                .map(|&(column, set)| Column { column: column as usize, set, weight: weigh(set) })
                .collect();
            let weight = columns.iter().map(|column| column.weight).sum();
            Weighed { nodes, columns, weight }
        })
    }
}

impl Clone for Alphabet {
    /// What was found is found anew.
    fn clone(&self) -> Self {
        let wide = self.wide.iter().map(|wide| Wide { first: wide.first, behind: wide.behind.clone() });
        Self {
            columns: self.columns.clone(),
            wide: wide.collect(),
            weighed: OnceLock::new(),
            known: Mutex::default(),
        }
    }
}

impl PartialEq for Alphabet {
    /// It follows from the table.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Alphabet {}

impl TableParts {
    /// What is known of the tokens that may follow at `position`, where so many are `left` behind the next one; `None` where all
    /// are to be read.
    pub(crate) fn character_runs(
        &self,
        position: &RowPosition,
        left: &mut Left,
    ) -> Option<Arc<CharacterRuns>> {
        let TokenReading::Bytes { vocabulary, alphabet, .. } = &self.reading else { return None };
        if self.alive_nodes(position.state, vocabulary, alphabet) <= FEW_NODES {
            return None;
        }
        let (stacks, top) = self.calls.as_ref().map(|calls| Stacks::of(calls, position)).unzip();
        let characters = vocabulary.characters();
        let known = alphabet.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = Reader {
            parts: self,
            alphabet,
            characters,
            weighed: alphabet.weighed(vocabulary),
            stacks,
            left,
            known,
            entered: Vec::new(),
            at: Vec::new(),
            next: Vec::new(),
            moves_stack: false,
            farthest: Some(no_farthest(self)),
            seen: Vec::new(),
            followed: Vec::new(),
        };
        reader.known_runs((position.state, top.unwrap_or(Top::EMPTY)))
    }

    /// How many nodes of the trie tokens have that begin with a byte that is alive in a state.
    fn alive_nodes(&self, state: StateId, vocabulary: &Vocabulary, alphabet: &Alphabet) -> usize {
        if let Some(runs) = self.next.runs(state) {
            let trie = vocabulary.trie();
            return runs.iter().map(|run| trie.count_between(run.first, run.last)).sum();
        }
        let (row, nodes) = (self.row(state), alphabet.weighed(vocabulary).nodes.iter());
        let alive = nodes.filter(|&&(column, _)| row[column as usize] != StateId::DEAD.0);
        alive.map(|&(_, nodes)| nodes as usize).sum()
    }
}

impl TableParts {
    /// The state that a byte enters from another.
    fn entered_by(&self, state: StateId, byte: u8) -> StateId {
        self.leads_by_runs(state).after(byte)
    }

    /// Calls `enters` with the states that bytes enter from a state, `DEAD` too, with some of them several times.
    fn each_entered(&self, state: StateId, bytes: &Bytes, mut enters: impl FnMut(u32)) {
        let &Bytes { first, last, ref columns } = bytes;
        let Some(runs) = self.next.runs(state) else {
            let row = self.row(state);
            return columns.iter().for_each(|&column| enters(row[column as usize]));
        };
        let mut dead = usize::from(last - first) + 1;
        for run in runs.iter().filter(|run| run.first <= last && run.last >= first) {
            dead -= usize::from(run.last.min(last) - run.first.max(first)) + 1;
            enters(rows::entered(run).0);
        }
        if dead > 0 {
            enters(StateId::DEAD.0);
        }
    }
}

/// A state in which a row may rest, and the frame on top of its stack then.
type Place = (StateId, Top);

/// Some characters and the place that they lead to.
#[derive(Clone)]
struct Way {
    to: Place,
    /// Where the row is amid these characters.
    amid: Vec<Place>,
    set: CharacterSet,
    /// Bytes with which other characters begin too, which lead nowhere.
    lacking: CharacterSet,
    /// How many tokens have characters of the set in their rests, about.
    weight: usize,
    /// The state that all of them enter, if there is one, and the stack is as it was until then.
    entered: Option<StateId>,
}

/// Where the characters lead from a place.
#[derive(Clone, Default)]
struct Ways {
    to: Vec<Way>,
    /// Characters that lead to several places, or that need more room on the stack than there is.
    split: CharacterSet,
}

impl Ways {
    /// The characters that lead nowhere.
    fn dead(&self) -> CharacterSet {
        let alive = self.to.iter().fold(self.split, |all, way| all.or(way.set).or(way.lacking));
        CharacterSet::CHARACTERS.without(alive)
    }
}

/// The first characters that lead to one place, without a space before them and with one.
struct Family {
    place: Place,
    first: [CharacterSet; 2],
    /// Bytes with which other characters begin too, which lead nowhere.
    lacking: [CharacterSet; 2],
    /// Where the row is amid these characters.
    amid: Vec<Place>,
}

impl Family {
    /// How many first bytes its characters have.
    fn count(&self) -> usize {
        self.first.iter().map(|set| set.count()).sum()
    }
}

/// Some steps from a place on.
struct Followed {
    /// How many they are,
    steps: usize,
    /// where the last of them leads,
    next: Place,
    /// by which characters, and which of all lead nowhere,
    sets: [CharacterSet; 2],
    /// and what each of [`TAILS`] enters before any of them, if that is one state.
    tails: [Option<StateId>; TAILS.len()],
    /// Whether nothing was known of them, nor of any that are alike.
    is_new: bool,
}

/// Where characters lead that were followed from behind their first bytes, see [`Reader::follow`].
struct FollowedWide {
    begun: Place,
    moved: bool,
    /// The number of these characters.
    wide: usize,
    found: Option<(Place, Option<StateId>)>,
    /// Whether some of them lead nowhere.
    are_lacking: bool,
    amid: Vec<Place>,
}

/// The characters of two pairs of sets.
fn united(a: [CharacterSet; 2], b: [CharacterSet; 2]) -> [CharacterSet; 2] {
    [0, 1].map(|at| a[at].or(b[at]))
}

/// Follows characters.
struct Reader<'a> {
    parts: &'a TableParts,
    alphabet: &'a Alphabet,
    characters: &'a Characters,
    weighed: &'a Weighed,
    stacks: Option<Stacks<'a>>,
    left: &'a mut Left,
    known: MutexGuard<'a, Known>,
    /// Scratch.
    entered: Vec<Entered>,
    at: Vec<Place>,
    next: Vec<Place>,
    /// Whether a call or a return was made.
    moves_stack: bool,
    /// Of the states in which tokens may end; `None` once there was one in which none may.
    farthest: Option<Vec<(u32, u32)>>,
    /// Where the characters lead from the places from which they were followed.
    seen: Vec<(Place, Rc<Ways>)>,
    /// Where characters beyond ASCII lead that were followed from behind their first bytes.
    followed: Vec<FollowedWide>,
}

/// A state that characters lead to by their first bytes.
#[derive(Clone, Copy)]
struct Entered {
    to: u32,
    set: CharacterSet,
    /// How many tokens have them in their rests.
    weight: usize,
}

impl Reader<'_> {
    fn known_runs(&mut self, start: Place) -> Option<Arc<CharacterRuns>> {
        if let Some((runs, farthest)) = self.known.runs.get(&start.0.0).cloned()
            && self.can_end_in_all(&farthest, start.1)
        {
            return Some(runs);
        }
        let runs = Arc::new(self.runs(start)?);
        if let Some(farthest) = self.farthest.take().filter(|_| !self.moves_stack) {
            if self.known.runs.len() >= MOST_RUNS {
                self.known.runs.clear();
            }
            self.known.runs.insert(start.0.0, (Arc::clone(&runs), farthest.into()));
        }
        Some(runs)
    }

    fn runs(&mut self, start: Place) -> Option<CharacterRuns> {
        self.enter(start.0);
        if !self.entered.iter().any(|entered| self.is_broad(StateId(entered.to))) {
            return None;
        }
        let bare = self.ways_by_step(start).unwrap_or_else(|| self.ways_entered(start));
        let behind_space = bare.to.iter().find(|way| way.set.contains(b' ')).map(|way| way.to);
        let spaced = match behind_space {
            Some(place) => self.ways(place),
            None if bare.split.contains(b' ') => {
                Rc::new(Ways { split: CharacterSet::ALL, ..Ways::default() })
            }
            None => Rc::default(),
        };
        let mut found = CharacterRuns { read: [bare.split, spaced.split], ..CharacterRuns::default() };
        let mut families: Vec<Family> = Vec::new();
        for (is_spaced, ways) in [bare, spaced].into_iter().enumerate() {
            for &Way { to, set, lacking, ref amid, .. } in &ways.to {
                let same = families.iter().position(|known| self.are_alike(known.place, to));
                let at = same.unwrap_or_else(|| {
                    let [first, lacking] = Default::default();
                    families.push(Family { place: to, first, lacking, amid: Vec::new() });
                    families.len() - 1
                });
                let family = &mut families[at];
                family.first[is_spaced] = family.first[is_spaced].or(set);
                family.lacking[is_spaced] = family.lacking[is_spaced].or(lacking);
                family.amid.extend(amid);
            }
        }
        // Those of many characters first: the others may be beside them.
        families.sort_by_cached_key(|family| std::cmp::Reverse(family.count()));
        // The places at which runs stay, with their numbers.
        let mut lasting: Vec<(Place, usize)> = Vec::new();
        for family in families {
            let beside = self.beside(&family, &lasting);
            let is_settled = beside.is_some() && family.count() <= FEW_CHARACTERS;
            if !is_settled && let Some((run, stays)) = self.run_of(&family) {
                lasting.extend(stays.map(|place| (place, found.runs.len())));
                found.runs.push(run);
                continue;
            }
            let all = united(family.first, family.lacking);
            let with = |sets: [CharacterSet; 2]| united(sets, all);
            match beside.map(|number| &mut found.runs[number]) {
                Some(run) => (run.beside, run.spelled.first) = (with(run.beside), with(run.spelled.first)),
                None => found.read = with(found.read),
            }
        }
        (!found.runs.is_empty()).then_some(found)
    }

    /// What may be read behind some first characters, and where that stays, if it does; `None` where tokens are to be read.
    fn run_of(&mut self, family: &Family) -> Option<(CharacterRun, Option<Place>)> {
        let (characters, own) = (self.characters, family.first);
        let first = united(own, family.lacking);
        if !characters.begin_more(first, FEW_TOKENS)
            || !self.is_broad(family.place.0)
            || !self.can_end_at(&family.amid)
        {
            return None;
        }
        let (run, stays) = self.run(family.place)?;
        // What is open is read in a part of the vocabulary for each character.
        let is_known =
            characters.are_few(run.open) && characters.begin_more(first, PER_OPEN * run.open.count());
        let spelled = Spelled { first, ..run.spelled };
        is_known.then_some((CharacterRun { spelled, own, lacking: family.lacking, ..run }, stays))
    }

    /// The run that holds behind some first characters as well but for tokens that go on with a few others, since all but these lead
    /// from there to where they lead from the place at which it stays.
    fn beside(&mut self, family: &Family, lasting: &[(Place, usize)]) -> Option<usize> {
        let (parts, characters, weighed, place) = (self.parts, self.characters, self.weighed, family.place);
        let sets = family.first.iter().chain(&family.lacking);
        if !sets.into_iter().all(|set| set.is_within(CharacterSet::ASCII)) {
            return None;
        }
        // How many tokens have characters in their rests that lead elsewhere than from another state.
        let except = |other: StateId| match [place.0, other].map(|state| parts.next.runs(state)) {
            [Some(runs), Some(other)] => Differences::new(runs, other)
                .map(|(first, last)| characters.count_rest_between(first, last))
                .sum::<usize>(),
            _ => {
                let [row, other] = [place.0, other].map(|state| parts.row(state));
                let columns =
                    weighed.columns.iter().filter(|column| row[column.column] != other[column.column]);
                columns.map(|column| column.weight).sum()
            }
        };
        let is_beside = |stays: Place| {
            MOST_EXCEPT * except(stays.0) <= weighed.weight && self.are_alike((stays.0, place.1), stays)
        };
        let &(_, number) = lasting.iter().find(|&&(stays, _)| is_beside(stays))?;
        self.can_end(place).then_some(number)
    }

    fn can_end_at(&mut self, places: &[Place]) -> bool {
        places.iter().all(|&place| self.can_end(place))
    }

    /// Whether many characters may be read in a state, or that is not known.
    fn is_broad(&self, state: StateId) -> bool {
        let weight: usize = match self.parts.next.runs(state) {
            Some(runs) => {
                runs.iter().map(|run| self.characters.count_rest_between(run.first, run.last)).sum()
            }
            None => {
                let (row, columns) = (self.parts.row(state), self.weighed.columns.iter());
                let alive = columns.filter(|column| row[column.column] != StateId::DEAD.0);
                alive.map(|column| column.weight).sum()
            }
        };
        BROAD * weight >= self.weighed.weight || !self.parts.rests(state)
    }

    /// Finds the states that a state leads to.
    fn enter(&mut self, state: StateId) {
        self.entered.clear();
        let entered = &mut self.entered;
        let mut add =
            |to: u32, set: CharacterSet, weight: usize| match entered.iter_mut().find(|known| known.to == to)
            {
                _ if to == StateId::DEAD.0 || set.is_empty() => {}
                Some(known) => (known.set, known.weight) = (known.set.or(set), known.weight + weight),
                None => entered.push(Entered { to, set, weight }),
            };
        let Some(runs) = self.parts.next.runs(state) else {
            let (row, columns) = (self.parts.row(state), self.weighed.columns.iter());
            return columns.for_each(|&Column { column, set, weight }| add(row[column], set, weight));
        };
        for run in runs {
            let set = CharacterSet::between(run.first, run.last).and(CharacterSet::CHARACTERS);
            add(rows::entered(run).0, set, self.characters.count_rest_between(run.first, run.last));
        }
    }

    /// What may be read at a place, and where that stays, if it does; `None` where that is not known.
    fn run(&mut self, mut place: Place) -> Option<(CharacterRun, Option<Place>)> {
        let longest = self.characters.longest();
        let (mut within, mut most, mut found) = (CharacterSet::default(), 0, 0);
        let (mut dead, mut stays, mut goes_on) = (CharacterSet::ALL, None, false);
        let mut closing = CharacterSet::of(TAILS);
        let mut closed = None;
        let is_known = loop {
            if !self.can_end(place) {
                return None;
            }
            let among = (most > 0).then_some(within);
            let Followed { steps, next, sets: [on, off], tails, is_new } =
                self.steps(place, among, longest + 1 - most)?;
            found += usize::from(is_new);
            dead = dead.and(off);
            match among {
                None => within = on,
                Some(among) if among.is_within(off) => {
                    // Only from here.
                    let tails = super::steps::tails(self.parts, place.0).map(Some);
                    closing = self.still_closing(closing, &mut closed, (tails, place.1));
                    break true;
                }
                Some(among) => within = among.and(on),
            }
            if within.is_empty() {
                // Nothing may be read behind the first character, or no one thing.
                if most > 0 || on != CharacterSet::default() {
                    return None;
                }
                break true;
            }
            closing = self.still_closing(closing, &mut closed, (tails, place.1));
            if steps == 1 && next == place {
                (stays, goes_on) = (Some(place), true);
                break true;
            }
            most += steps;
            if most > longest {
                goes_on = true;
                break true;
            }
            // What is known of further steps costs little, and what is not is found from place to place.
            if found > LONGEST && most > LONGEST {
                break false;
            }
            place = next;
        };
        let open = CharacterSet::CHARACTERS.without(within).without(dead);
        let reach = if goes_on { usize::MAX } else { most };
        let most = if goes_on { ANY_LENGTH } else { most.min(LONGEST) };
        let run = CharacterRun {
            spelled: Spelled { first: Default::default(), within, most },
            reach: is_known.then_some(reach),
            open,
            closing: if is_known { closing } else { CharacterSet::default() },
            stays: stays.map(|(state, _)| state),
            own: Default::default(),
            beside: Default::default(),
            lacking: Default::default(),
        };
        Some((run, stays))
    }

    /// Those of characters that lead to the same place from states that enter `tails` by them, with the same stack, as from those `before`.
    fn still_closing(
        &mut self,
        closing: CharacterSet,
        before: &mut Option<([Option<StateId>; TAILS.len()], Top)>,
        (tails, top): ([Option<StateId>; TAILS.len()], Top),
    ) -> CharacterSet {
        let (first, first_top) = *before.get_or_insert((tails, top));
        let is_alike = |reader: &mut Self, at: usize| {
            first[at].zip(tails[at]).is_some_and(|(first, entered)| {
                entered != StateId::DEAD && reader.rest_alike((first, first_top), (entered, top))
            })
        };
        let known = (0..TAILS.len()).filter(|&at| closing.contains(TAILS[at]));
        CharacterSet::of(known.filter(|&at| is_alike(self, at)).map(|at| TAILS[at]).collect::<Vec<_>>())
    }

    /// One step from a place, or several that are known to be alike; so `many` are asked for, or fewer.
    fn steps(&mut self, place: Place, among: Option<CharacterSet>, many: usize) -> Option<Followed> {
        let is_known = self.known.steps.is_known(self.parts, place.0, many);
        if let Some(KnownStep { sets, .. }) = self.known.steps.of(place.0)
            && self.leads(among, sets)
            && let Some(ahead) = self.known.steps.ahead(place.0)
            && ahead.steps >= WORTH_AT_ONCE
        {
            let all_end = self.can_end_in_all(&ahead.farthest, place.1);
            if let Some(next) = all_end.then(|| self.settle(ahead.entered.0, place.1, &mut false)).flatten() {
                if let Some(all) = &mut self.farthest {
                    widen(all, ahead.farthest.iter().copied());
                }
                return Some(Followed { steps: ahead.steps, next, sets, tails: ahead.tails, is_new: false });
            }
        }
        let (next, sets) = self.step(place, among)?;
        let tails = tails(self.parts, place.0).map(Some);
        Some(Followed { steps: 1, next, sets, tails, is_new: !is_known })
    }

    /// Whether a step is that by characters `among` these, of which some lead on and some nowhere.
    fn leads(&self, among: Option<CharacterSet>, [on, off]: [CharacterSet; 2]) -> bool {
        let count = |set: CharacterSet| self.characters.count_rest(set);
        among.is_none_or(|among| {
            among.is_within(on) || among.is_within(off) || 2 * count(among.and(on)) > count(among)
        })
    }

    /// The place that most of the vocabulary leads to from another, by characters `among` these, which of all characters lead there, and which
    /// nowhere; `None` where a token may not end amid one of them.
    fn step(&mut self, place: Place, among: Option<CharacterSet>) -> Option<(Place, [CharacterSet; 2])> {
        if let Some(KnownStep { entered, sets, amid }) = self.known.steps.of(place.0)
            && self.leads(among, sets)
        {
            let amid = amid.to_vec();
            if let Some(next) = self.settle(entered.0, place.1, &mut false) {
                let can_end = amid.iter().all(|&state| self.can_end((state, place.1)));
                return can_end.then_some((next, sets));
            }
        }
        let ways = self.ways(place);
        let weigh = |way: &Way| match among {
            Some(among) if !way.set.is_within(among) => self.characters.count_rest(way.set.and(among)),
            _ => way.weight,
        };
        let dead = ways.dead();
        let Some(main) = ways.to.iter().max_by_key(|way| weigh(way)) else {
            return Some((place, [CharacterSet::default(), dead]));
        };
        let (next, sets) = (main.to, [main.set, dead]);
        if let Some(entered) = main.entered.filter(|_| among.is_none_or(|among| among.is_within(main.set))) {
            let amid = main.amid.iter().map(|&(state, _)| state);
            self.known.steps.keep(self.parts, place.0, entered, sets, amid);
        }
        self.can_end_at(&main.amid).then_some((next, sets))
    }

    /// Where the characters lead from a place.
    fn ways(&mut self, place: Place) -> Rc<Ways> {
        if let Some((_, ways)) = self.seen.iter().find(|(seen, _)| *seen == place) {
            return Rc::clone(ways);
        }
        self.ways_by_step(place).unwrap_or_else(|| {
            self.enter(place.0);
            self.ways_entered(place)
        })
    }

    /// The same where the step is known, and few characters lead neither where it does nor nowhere.
    fn ways_by_step(&mut self, place: Place) -> Option<Rc<Ways>> {
        if !self.known.steps.is_known(self.parts, place.0, 1) {
            return None;
        }
        let KnownStep { entered, sets: [on, off], amid } = self.known.steps.of(place.0)?;
        let others = CharacterSet::CHARACTERS.without(on).without(off);
        if !others.is_within(CharacterSet::ASCII) || others.count() > FEW_CHARACTERS {
            return None;
        }
        let amid = amid.iter().map(|&state| (state, place.1)).collect();
        let to = self.settle(entered.0, place.1, &mut false)?;
        let mut ways = Ways::default();
        let weight = self.weighed.weight;
        let lacking = CharacterSet::default();
        self.add(&mut ways, Way { to, amid, set: on, lacking, weight, entered: Some(entered) });
        for byte in others.bytes() {
            let (entered, set) = (self.parts.entered_by(place.0, byte), CharacterSet::of([byte]));
            match self.settle(entered.0, place.1, &mut false) {
                Some(to) => {
                    let weight = self.characters.count_rest_between(byte, byte);
                    let (amid, entered) = (Vec::new(), Some(entered));
                    self.add(&mut ways, Way { to, amid, set, lacking, weight, entered });
                }
                None => ways.split = ways.split.or(set),
            }
        }
        let ways = Rc::new(ways);
        self.seen.push((place, Rc::clone(&ways)));
        Some(ways)
    }

    /// The same where the states were [entered](Self::enter).
    fn ways_entered(&mut self, place: Place) -> Rc<Ways> {
        let top = place.1;
        let mut ways = Ways::default();
        for at in 0..self.entered.len() {
            let Entered { to, set, weight } = self.entered[at];
            let mut moves_stack = false;
            let Some(at) = self.settle(to, top, &mut moves_stack) else {
                ways.split = ways.split.or(set);
                continue;
            };
            let ascii = set.and(CharacterSet::ASCII);
            let (entered, lacking) = (Some(StateId(to)), CharacterSet::default());
            self.add(&mut ways, Way { to: at, amid: Vec::new(), set: ascii, lacking, weight, entered });
            if ascii == set {
                continue;
            }
            for (wide, Wide { first, .. }) in self.alphabet.wide.iter().enumerate() {
                let set = set.and(*first);
                if set.is_empty() {
                    continue;
                }
                let followed = self.follow(at, wide, moves_stack);
                let FollowedWide { found, are_lacking, ref amid, .. } = self.followed[followed];
                match found {
                    Some((to, entered)) => {
                        let amid = amid.clone();
                        let (lacking, set) = if are_lacking { (set, lacking) } else { (lacking, set) };
                        let weight = if are_lacking { 0 } else { weight };
                        self.add(&mut ways, Way { to, amid, set, lacking, weight, entered });
                    }
                    None => ways.split = ways.split.or(set),
                }
            }
        }
        let ways = Rc::new(ways);
        self.seen.push((place, Rc::clone(&ways)));
        ways
    }

    fn add(&self, ways: &mut Ways, way: Way) {
        if way.set.is_empty() && way.lacking.is_empty() {
            return;
        }
        match ways.to.iter_mut().find(|known| self.are_alike(known.to, way.to)) {
            Some(known) => {
                if known.set.is_empty() {
                    known.entered = way.entered;
                } else if !way.set.is_empty() {
                    known.entered = known.entered.filter(|_| known.entered == way.entered);
                }
                known.set = known.set.or(way.set);
                known.lacking = known.lacking.or(way.lacking);
                known.weight += way.weight;
                known
                    .amid
                    .extend(way.amid.iter().filter(|place| !known.amid.contains(place)).collect::<Vec<_>>());
            }
            None => ways.to.push(way),
        }
    }

    /// Follows the further bytes of characters beyond ASCII, and gives the place of what it found: `None` where they do not lead to one
    /// place, or nowhere, else the state too that all of them enter, if there is one and nothing moves the stack before; it may have been `moved`
    /// already. Where the row is in between is kept with it.
    fn follow(&mut self, begun: Place, wide: usize, moved: bool) -> usize {
        let same = |known: &FollowedWide| (known.begun, known.wide, known.moved) == (begun, wide, moved);
        if let Some(known) = self.followed.iter().position(same) {
            return known;
        }
        let followed = self.follow_bytes(begun, wide, moved);
        self.followed.push(followed);
        self.followed.len() - 1
    }

    /// The same where it was not found before.
    fn follow_bytes(&mut self, begun: Place, wide: usize, was_moved: bool) -> FollowedWide {
        let (mut moved, mut are_lacking) = (was_moved, false);
        let [mut at, mut next] = [&mut self.at, &mut self.next].map(std::mem::take);
        let mut amid = Vec::new();
        at.clear();
        at.push(begun);
        let (mut all_read, mut entered) = (true, None);
        for bytes in &self.alphabet.wide[wide].behind {
            amid.extend_from_slice(&at);
            next.clear();
            let (mut first, mut is_one) = (None, !moved);
            for &(state, top) in &at {
                let (parts, mut last) = (self.parts, None);
                parts.each_entered(state, bytes, |to| {
                    if last.replace(to) == Some(to) {
                        return;
                    }
                    is_one &= *first.get_or_insert(to) == to;
                    if to == StateId::DEAD.0 {
                        are_lacking = true;
                        return;
                    }
                    match self.settle(to, top, &mut moved) {
                        Some(place) if !next.iter().any(|&known| self.are_alike(known, place)) => {
                            next.push(place)
                        }
                        Some(_) => {}
                        None => all_read = false,
                    }
                });
            }
            entered = first.filter(|_| is_one);
            std::mem::swap(&mut at, &mut next);
            if !all_read || at.len() > MOST_STATES {
                break;
            }
        }
        let found = match at[..] {
            [place] if all_read => Some((place, entered.map(StateId))),
            _ => None,
        };
        (self.at, self.next) = (at, next);
        FollowedWide { begun, moved: was_moved, wide, found, are_lacking, amid }
    }

    /// Where a row comes to rest that enters a state; `None` where the stack has no room.
    fn settle(&mut self, entered: u32, top: Top, moves_stack: &mut bool) -> Option<Place> {
        let Some(stacks) = &mut self.stacks else { return Some((StateId(entered), top)) };
        let place = stacks.settle(StateId(entered), top);
        let moves = place != (StateId(entered), top);
        (*moves_stack, self.moves_stack) = (*moves_stack | moves, self.moves_stack | moves);
        (place.0 != StateId::DEAD).then_some(place)
    }

    /// Whether the same follows once a row entered states, each with a stack.
    fn rest_alike(&mut self, a: Place, b: Place) -> bool {
        let Some(stacks) = self.stacks.as_mut().filter(|_| a != b) else { return a == b };
        let rest = [a, b].map(|(entered, top)| stacks.settle(entered, top));
        // It is so with this stack.
        self.moves_stack |= rest != [a, b];
        rest[0].0 != StateId::DEAD && self.are_alike(rest[0], rest[1])
    }

    /// Whether the same follows at two places. Characters of several lengths make calls of their own, which return alike.
    fn are_alike(&self, (state, top): Place, (other, other_top): Place) -> bool {
        state == other && self.stacks.as_ref().is_none_or(|stacks| stacks.are_alike(top, other_top))
    }

    fn can_end(&mut self, (state, top): Place) -> bool {
        let to_end = match &self.stacks {
            None => self.parts.tokens_to_end[state.index()],
            Some(stacks) => stacks.to_end(state, top),
        };
        let can_end = self.left.reach(to_end);
        match &mut self.farthest {
            Some(all) if can_end => add_farthest(self.parts, state, all),
            farthest => *farthest = None,
        }
        can_end
    }

    /// Whether a token may end in all of some states, where it does with this frame on top of the stack.
    fn can_end_in_all(&mut self, farthest: &[(u32, u32)], top: Top) -> bool {
        self.left.reach(match &self.stacks {
            None => farthest[0].0,
            Some(stacks) => stacks.to_end_of_all(farthest, top),
        })
    }
}
