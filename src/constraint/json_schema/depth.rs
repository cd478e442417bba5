//! How deep a schema is followed where it has no end: recursion, and any JSON.
//!
//! Each level more lets in more values and takes more states, so a schema is followed as deep as is cheap. What
//! a plan takes is found by trial: without any JSON in it it is emitted in a fraction of the time that the
//! whole takes, and then the places that allow any JSON, each of which takes the same number of states, are counted.

use super::plan::{PlanId, Planner, Size};
use super::{JsonOptions, Schema, emit};
use crate::error::{Error, Limit, Result};

/// How often recursion is followed at most, where the options leave it open.
const MOST_RECURSION: usize = 8;

/// Recursion is followed so often even where that is not cheap, but up to [`MOST_STATES`].
const COMMON_RECURSION: usize = 3;

/// States up to which recursion is followed once more.
const CHEAP_RECURSION: usize = 30_000;

/// States of the plan, which has fewer than the automaton, that one more level of recursion may take.
const MOST_PLANNED: usize = 20_000;

/// Levels of any JSON at least and at most, where the options leave it open.
const LEAST_ANY: usize = 3;
const MOST_ANY: usize = 10;

/// Schemas of so many states at the least depth are small. Half of all schemas leave properties unnamed and little
/// else open: these go a level deeper up to [`CHEAP_UNNAMED`] states, and take less than a millisecond; where any JSON
/// is asked for, it goes a level deeper up to [`CHEAP_ASKED`].
const SMALL: u64 = 5_000;
const CHEAP_UNNAMED: u64 = 2_000;
const CHEAP_ASKED: u64 = 16_000;

/// States up to which any JSON goes a level deeper in other schemas: those of about ten milliseconds.
const LARGE: u64 = 20_000;

/// Schemas that are larger at the least depth may become so many times larger, up to these states.
const GROWTH: u64 = 3;
const MOST_STATES: usize = 200_000;

/// An estimate is above the limit for certain where it is so many times as large.
const CERTAIN: u64 = 2;

/// How deep a schema was followed where it has no end: see [`JsonOptions::recursion`] and
/// [`JsonOptions::any_depth`].
///
/// ```
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
/// use serde_json::json;
///
/// let bytes = (b' '..=b'~').map(|byte| Some([byte])).chain([None]);
/// let vocabulary = Vocabulary::from_bytes(bytes)?.with_eos([TokenId(95)])?;
/// let list = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
/// let table = TokenTable::compile(&Constraint::json_schema(list)?, &vocabulary, &Limits::default())?;
/// let unrolled = table.unrolled().unwrap();
/// assert_eq!((unrolled.recursion, unrolled.any), (Some(8), None));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unrolled {
    /// How often recursive references were followed; `None` where there are none.
    pub recursion: Option<usize>,
    /// Levels of any JSON where the schema asks for that; `None` where it does not.
    pub any: Option<usize>,
    /// Levels of any JSON in properties beside others that the schema names; `None` where there are none.
    pub unnamed: Option<usize>,
}

impl Schema {
    /// Plans the schema, as deep as the options say or as is cheap.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn plan(&self, planner: &mut Planner) -> Result<(PlanId, Unrolled)> {
        let JsonOptions { recursion, any_depth, .. } = self.options;
        let mut followed = recursion.unwrap_or(1);
        let mut root = planner.root(followed)?;
        let mut levels = [any_depth.unwrap_or(LEAST_ANY); 2];
        let is_recursive = !self.later.is_empty();
        let recurs = is_recursive && recursion.is_none();
        if recurs || any_depth.is_none() && planner.places() != [None; 2] {
            let mut size = first_size(planner, root, levels)?;
            while recurs && let Some(deeper) = recur(planner, root, followed + 1, levels)? {
                (root, size) = deeper;
                followed += 1;
            }
            if any_depth.is_none() {
                deepen(planner, size, &mut levels);
            }
        }
        planner.set_any(levels)?;
        let [any, unnamed] = planner.places();
        let unrolled = Unrolled {
            recursion: is_recursive.then_some(followed),
            any: any.map(|_| levels[0]),
            unnamed: unnamed.map(|_| levels[1]),
        };
        Ok((root, unrolled))
    }
}

/// The size of the shallowest plan.
///
/// # Errors
/// Where a limit is breached, or for certain would be.
fn first_size(planner: &mut Planner, root: PlanId, levels: [usize; 2]) -> Result<Size> {
    let limit = planner.meter().limits().states;
    match size(planner, root, limit)? {
        Some(size) if planner.states(size, levels) / CERTAIN <= limit as u64 => Ok(size),
        // Emitted to no end, which says of which part most of it is.
        None => match emit::emit(planner, root) {
            Err(error) if error.is_limit() => Err(error),
            _ => Err(Error::limit(Limit::States(limit))),
        },
        Some(_) => Err(Error::limit(Limit::States(limit))),
    }
}

/// The plan that follows recursion so often, and its size; `None` where that is not cheap. `root` is the plan that
/// follows it once less.
fn recur(
    planner: &mut Planner,
    root: PlanId,
    recursion: usize,
    levels: [usize; 2],
) -> Result<Option<(PlanId, Size)>> {
    let (states, planned) = match recursion {
        _ if recursion > MOST_RECURSION => return Ok(None),
        // Where nothing is as shallow as that, cheap or not.
        _ if planner.get(root).is_empty() => {
            let deeper = planner.root(recursion)?;
            return Ok(Some((deeper, first_size(planner, deeper, levels)?)));
        }
        ..=COMMON_RECURSION => (MOST_STATES, MOST_PLANNED),
        _ => (CHEAP_RECURSION, MOST_PLANNED),
    };
    // Too large for the limit is not cheap either.
    let states = states.min(planner.meter().limits().states);
    let Some(deeper) = planner.root_within(recursion, planned)? else { return Ok(None) };
    let size = size(planner, deeper, states)?;
    let size = size.filter(|&size| planner.states(size, levels) <= states as u64);
    Ok(size.map(|size| (deeper, size)))
}

/// Lets anything go deeper, in both kinds of places by turns, while that is cheap.
fn deepen(planner: &Planner, size: Size, levels: &mut [usize; 2]) {
    let least = planner.states(size, *levels);
    let most = if least <= SMALL {
        [CHEAP_ASKED, CHEAP_UNNAMED]
    } else if least <= LARGE {
        [LARGE; 2]
    } else {
        [least.saturating_mul(GROWTH).min(MOST_STATES as u64); 2]
    };
    let most = most.map(|most| most.min(planner.meter().limits().states as u64));
    let mut open = planner.places().map(|place| place.is_some());
    while open != [false; 2] {
        for place in [1, 0] {
            if !open[place] {
                continue;
            }
            levels[place] += 1;
            if levels[place] > MOST_ANY || planner.states(size, *levels) > most[place] {
                levels[place] -= 1;
                open[place] = false;
            }
        }
    }
}

/// The size of a plan; `None` where it has more than `most` states without any JSON.
fn size(planner: &mut Planner, root: PlanId, most: usize) -> Result<Option<Size>> {
    planner.set_any([0; 2])?;
    emit::size(planner, root, most)
}
