//! Chooses the depth to which recursive references and any JSON are expanded, since a finite
//! automaton has no stack.
//!
//! *Any JSON* is a position of the schema that allows values of every type. Each further level
//! allows more values and takes more states, so a schema is expanded as deep as is cheap. The
//! number of states is estimated: the plan is emitted with any JSON at depth 0, which is quick.
//! Then the states of any JSON at the wanted depth are added; all positions of one depth have the
//! same number of states.

use super::plan::{PlanId, Planner, Size};
use super::{JsonOptions, MAX_NESTING, Schema, emit};
use burn_dfa_common::{Error, ErrorKind, Limit, Result};

/// The greatest recursion depth chosen if the options set none.
const MAX_RECURSION: usize = 8;

/// Up to this recursion depth, the number of states is bounded by [`MAX_STATES`] instead of
/// [`CHEAP_RECURSION`].
const COMMON_RECURSION: usize = 3;

/// The most states after a further level of recursion.
const CHEAP_RECURSION: usize = 30_000;

/// The most states that a further level of recursion may add to the plan. A plan has fewer states
/// than its automaton.
const MAX_PLANNED: usize = 20_000;

/// The least and the greatest depth of any JSON chosen if the options set none.
const LEAST_ANY: usize = 3;
const MAX_ANY: usize = 10;

/// A schema is small if it has at most this number of states at the least depth. In a small schema,
/// the values of undeclared properties get deeper while the schema has at most [`CHEAP_UNNAMED`]
/// states: about half of all schemas have such properties and no other any JSON, and take less than
/// a millisecond. Any JSON requested by the schema itself gets deeper up to [`CHEAP_ASKED`] states.
const SMALL: u64 = 5_000;
const CHEAP_UNNAMED: u64 = 2_000;
const CHEAP_ASKED: u64 = 16_000;

/// In a schema with more than [`SMALL`] but at most this many states, any JSON gets deeper up to
/// this number of states, which takes about ten milliseconds.
const LARGE: u64 = 20_000;

/// A still larger schema may grow by the factor `GROWTH`, but not beyond `MAX_STATES` states.
const GROWTH: u64 = 3;
const MAX_STATES: usize = 200_000;

/// If an estimate exceeds the limit by this factor, the automaton certainly exceeds it.
const CERTAIN: u64 = 2;

/// The depth to which recursion and any JSON were expanded: see [`JsonOptions::recursion`] and
/// [`JsonOptions::any_depth`].
///
/// ```
/// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
/// use serde_json::json;
///
/// let bytes = (b' '..=b'~').map(|byte| Some([byte])).chain([None]);
/// let vocabulary = Vocabulary::from_bytes(bytes)?.with_eos([TokenId(95)])?;
/// let next = json!({"next": {"$ref": "#"}});
/// let list = json!({"type": "object", "properties": next, "additionalProperties": false});
/// let copied = Limits::new().with_frames(0);
/// let compiled =
///     CompiledConstraint::compile(&Constraint::json_schema(list)?, &vocabulary, &copied)?;
/// let unrolled = compiled.unrolled().unwrap();
/// assert_eq!((unrolled.recursion, unrolled.any), (Some(8), None));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unrolled {
    /// The number of times recursive references were followed. `None`: the schema has none.
    pub recursion: Option<usize>,
    /// The depth of any JSON that the schema itself requests, such as `{}` or `true`. `None` if it
    /// requests none.
    pub any: Option<usize>,
    /// The depth of any JSON in undeclared properties of objects with declared properties. `None`
    /// if no object has both.
    pub unnamed: Option<usize>,
}

impl Schema {
    /// Plans the schema, as deep as the options set or as is cheap.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn plan(&self, planner: &mut Planner) -> Result<(PlanId, Unrolled)> {
        let JsonOptions { recursion, any_depth, .. } = self.options;
        if recursion.into_iter().chain(any_depth).any(|depth| depth > MAX_NESTING) {
            return Err(Error::limit(Limit::Nesting(MAX_NESTING)));
        }
        let mut followed = recursion.unwrap_or(1);
        let mut root = planner.root(followed)?;
        let mut levels = [any_depth.unwrap_or(LEAST_ANY); 2];
        let is_recursive = !self.later.is_empty();
        let recurs = is_recursive && recursion.is_none();
        if recurs || any_depth.is_none() && planner.any_plans() != [None; 2] {
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
        let [any, unnamed] = planner.any_plans();
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
/// A limit is exceeded, or would certainly be exceeded.
fn first_size(planner: &mut Planner, root: PlanId, levels: [usize; 2]) -> Result<Size> {
    let limit = planner.meter().limits().states;
    match size(planner, root, limit)? {
        Some(size) if planner.states(size, levels) / CERTAIN <= limit as u64 => Ok(size),
        // Emitted only for its error, which names the part of the schema with most states.
        None => match emit::emit(planner, root) {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            _ => Err(Error::limit(Limit::States(limit))),
        },
        Some(_) => Err(Error::limit(Limit::States(limit))),
    }
}

/// The plan of this recursion depth and its size; `None` if it is not cheap. `root` is the plan of
/// the previous depth.
fn recur(
    planner: &mut Planner,
    root: PlanId,
    recursion: usize,
    levels: [usize; 2],
) -> Result<Option<(PlanId, Size)>> {
    let (states, planned) = match recursion {
        _ if recursion > MAX_RECURSION => return Ok(None),
        // No value is as shallow as `root`, so a deeper plan is needed at any cost.
        _ if planner.get(root).is_empty() => {
            let deeper = planner.root(recursion)?;
            return Ok(Some((deeper, first_size(planner, deeper, levels)?)));
        }
        ..=COMMON_RECURSION => (MAX_STATES, MAX_PLANNED),
        _ => (CHEAP_RECURSION, MAX_PLANNED),
    };
    // A plan beyond the limit is not cheap either.
    let states = states.min(planner.meter().limits().states);
    let Some(deeper) = planner.root_within(recursion, planned)? else { return Ok(None) };
    let size = size(planner, deeper, states)?;
    let size = size.filter(|&size| planner.states(size, levels) <= states as u64);
    Ok(size.map(|size| (deeper, size)))
}

/// Raises the depth of any JSON while it is cheap, alternating between its two kinds.
fn deepen(planner: &Planner, size: Size, levels: &mut [usize; 2]) {
    let least = planner.states(size, *levels);
    let max = if least <= SMALL {
        [CHEAP_ASKED, CHEAP_UNNAMED]
    } else if least <= LARGE {
        [LARGE; 2]
    } else {
        [least.saturating_mul(GROWTH).min(MAX_STATES as u64); 2]
    };
    let max = max.map(|max| max.min(planner.meter().limits().states as u64));
    let mut open = planner.any_plans().map(|plan| plan.is_some());
    while open != [false; 2] {
        for kind in [1, 0] {
            if !open[kind] {
                continue;
            }
            levels[kind] += 1;
            if levels[kind] > MAX_ANY || planner.states(size, *levels) > max[kind] {
                levels[kind] -= 1;
                open[kind] = false;
            }
        }
    }
}

/// The size of a plan; `None` if it has more than `max` states without any JSON.
fn size(planner: &mut Planner, root: PlanId, max: usize) -> Result<Option<Size>> {
    planner.set_any([0; 2])?;
    emit::size(planner, root, max)
}
