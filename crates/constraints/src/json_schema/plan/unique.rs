//! `uniqueItems`: exact if the items come from a finite list of values, remembered by the states of
//! an array.
//!
//! The set of earlier items is part of a state. So an array of at most *m* items from *n* values
//! has a state for each set of fewer than *m* values. After the last item allowed by `maxItems`, no
//! set is needed.
//!
//! For `{"items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "maxItems": 2}`, these are the
//! four sets {}, {a}, {b} and {c}; in the state {a} the next item is "b" or "c".

use std::sync::Arc;

use super::{Kind, Planner};
use crate::json_schema::formula::{Formula, Leaf, Term};
use crate::json_schema::json::{Json, Members};
use crate::json_schema::number::Decimal;
use crate::json_schema::types::Types;
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result, Unenforced};

/// The most steps from a set of values over one more value.
const MAX_STEPS: usize = 1 << 16;
/// The most values listed for items, including invalid ones.
const MAX_LISTED: usize = 1 << 10;

impl Planner<'_> {
    /// Adds the possible values of items to `uniqueItems`.
    pub(super) fn with_domains(&mut self, residues: &[Formula]) -> Result<Vec<Formula>> {
        let mut values: FastMap<Formula, Formula> = FastMap::default();
        for &leaf in self.leaves_of(residues).iter() {
            let Some(Leaf::Unique { domain, .. }) = self.formulas.as_leaf(leaf) else { continue };
            if domain.is_empty() {
                let unique = self.unique(leaf, residues[0])?;
                values.insert(leaf, unique);
            }
        }
        Ok(self.assign(residues, &values))
    }

    /// The most items allowed by `must`.
    pub(super) fn max_items(&self, must: Formula) -> Option<u64> {
        let parts = self.formulas.conjuncts(must);
        let counts = parts.iter().filter_map(|&part| match self.formulas.term(part) {
            Term::Not(inner) => match self.formulas.as_leaf(*inner) {
                Some(Leaf::Items(count)) => Some(count.saturating_sub(1)),
                _ => None,
            },
            // No item from an index on.
            Term::Leaf(Leaf::Rest(from, below)) if *below == Formula::FALSE => Some(*from),
            _ => None,
        });
        counts.min()
    }

    fn unique(&mut self, leaf: Formula, must: Formula) -> Result<Formula> {
        let max_items = self.max_items(must);
        if max_items.is_some_and(|max_items| max_items <= 1) {
            return Ok(Formula::TRUE);
        }
        let Some(goals) = self.item_goals(must) else { return self.without_unique(leaf) };
        if self.are_disjoint(&goals, max_items)? {
            return Ok(Formula::TRUE);
        }
        let mut domain: Vec<Json> = Vec::new();
        for goal in goals {
            let goal = self.looked_up(goal)?;
            let Some(values) = self.enumerated(goal, MAX_LISTED)? else {
                return self.without_unique(leaf);
            };
            for value in values {
                if self.holds(goal, &value)? == Some(true) && !domain.contains(&value) {
                    domain.push(value);
                }
            }
        }
        if domain.is_empty() {
            return Ok(Formula::TRUE);
        }
        if sets(domain.len(), max_items).saturating_mul(domain.len()) > MAX_STEPS {
            return self.without_unique(leaf);
        }
        Ok(self.formulas.leaf(Leaf::Unique { domain: domain.into(), met: Arc::new([]) }))
    }

    /// The formulas of the items at each index, the last one for all further indices; `None` if too
    /// many indices differ.
    fn item_goals(&mut self, must: Formula) -> Option<Vec<Formula>> {
        let parts = self.formulas.conjuncts(must);
        let mut rest: Vec<(u64, Formula)> = Vec::new();
        let mut first: Vec<(u64, Formula)> = Vec::new();
        for &part in parts.iter() {
            match self.formulas.term(part) {
                Term::Leaf(Leaf::Rest(from, below)) => rest.push((*from, *below)),
                Term::Leaf(Leaf::Item(at, below)) => first.push((*at, *below)),
                _ => {}
            }
        }
        let listed = rest.iter().map(|(from, _)| *from).chain(first.iter().map(|(at, _)| at + 1));
        let count = listed.max().unwrap_or(0);
        if count > MAX_LISTED as u64 {
            return None;
        }
        let mut goals = Vec::new();
        for at in 0..count {
            let of_item = first.iter().filter(|(index, _)| *index == at).map(|(_, below)| *below);
            let of_rest = rest.iter().filter(|(from, _)| *from <= at).map(|(_, below)| *below);
            goals.push(self.formulas.and(of_item.chain(of_rest)));
        }
        goals.push(self.formulas.and(rest.iter().map(|(_, below)| *below)));
        Some(goals)
    }

    /// Whether equal items are impossible because each index has a different type; at most
    /// `max_items` items are allowed.
    fn are_disjoint(&mut self, goals: &[Formula], max_items: Option<u64>) -> Result<bool> {
        let Some(max_items) = max_items.filter(|&max_items| max_items < goals.len() as u64) else {
            return Ok(false);
        };
        let mut met = Types::NONE;
        for &goal in &goals[..max_items as usize] {
            let goal = self.looked_up(goal)?;
            let types = self.types_of(goal);
            if types.meets(met) {
                return Ok(false);
            }
            met = met.or(types);
        }
        Ok(true)
    }

    /// A set of types that contains the type of every value of `formula`.
    fn types_of(&self, formula: Formula) -> Types {
        match self.formulas.term(formula) {
            Term::Constant(false) => Types::NONE,
            Term::Leaf(Leaf::Types(types)) => *types,
            Term::Leaf(Leaf::Values(values)) => values.iter().map(Types::of).fold(Types::NONE, Types::or),
            Term::And(parts) => parts.iter().fold(Types::ALL, |types, &part| types.and(self.types_of(part))),
            Term::Or(parts) | Term::One(parts) => {
                parts.iter().fold(Types::NONE, |types, &part| types.or(self.types_of(part)))
            }
            _ => Types::ALL,
        }
    }

    /// A list with every value of `formula`, if it has at most `max_values` values.
    fn enumerated(&mut self, formula: Formula, max_values: usize) -> Result<Option<Vec<Json>>> {
        let formula = self.looked_up(formula)?;
        if let Some(values) = self.listed(formula) {
            return Ok((values.len() <= max_values).then_some(values));
        }
        if let Term::Or(parts) | Term::One(parts) = self.formulas.term(formula).clone() {
            let mut all: Vec<Json> = Vec::new();
            for &part in parts.iter() {
                let Some(values) = self.enumerated(part, max_values)? else { return Ok(None) };
                all.extend(values);
                if all.len() > max_values {
                    return Ok(None);
                }
            }
            return Ok(Some(all));
        }
        let types = self.types_of(formula);
        if types.meets(Types::FRACTION.or(Types::STRING)) {
            return Ok(None);
        }
        let mut all = Vec::new();
        if types.meets(Types::NULL) {
            all.push(Json::Null);
        }
        if types.meets(Types::BOOLEAN) {
            all.extend([Json::Boolean(false), Json::Boolean(true)]);
        }
        if types.meets(Types::INTEGER) {
            let Some((least, greatest)) = self.integer_range(formula) else { return Ok(None) };
            if greatest.saturating_sub(least) >= max_values as i64 {
                return Ok(None);
            }
            all.extend((least..=greatest).map(|value| Json::Number(Decimal::from(i128::from(value)))));
        }
        if types.meets(Types::ARRAY) {
            let array = self.narrow(formula, Kind::Array);
            let Some(arrays) = self.enumerated_arrays(array, max_values)? else { return Ok(None) };
            all.extend(arrays.into_iter().map(Json::Array));
        }
        if types.meets(Types::OBJECT) {
            let object = self.narrow(formula, Kind::Object);
            let Some(objects) = self.enumerated_objects(object, max_values)? else { return Ok(None) };
            all.extend(objects.into_iter().map(Json::Object));
        }
        Ok((all.len() <= max_values).then_some(all))
    }

    /// The least and the greatest integer within the bounds of `formula`.
    fn integer_range(&self, formula: Formula) -> Option<(i64, i64)> {
        let (mut least, mut greatest) = (None, None);
        for &part in self.formulas.conjuncts(formula).iter() {
            match self.formulas.as_leaf(part) {
                Some(Leaf::AtLeast { bound, .. }) => least = least.max(bound.floor()),
                Some(Leaf::AtMost { bound, .. }) => {
                    // At least the bound; values beyond it are no members.
                    let above = bound.floor()?.checked_add(1)?;
                    greatest = Some(greatest.map_or(above, |greatest: i64| greatest.min(above)));
                }
                _ => {}
            }
        }
        least.zip(greatest)
    }

    /// A superset of the arrays of `formula`.
    fn enumerated_arrays(&mut self, formula: Formula, max_values: usize) -> Result<Option<Vec<Vec<Json>>>> {
        let Some(length) = self.max_items(formula) else { return Ok(None) };
        if length > max_values as u64 {
            return Ok(None);
        }
        let Some(goals) = self.item_goals(formula) else { return Ok(None) };
        let mut last: Vec<Vec<Json>> = vec![Vec::new()];
        let mut all = last.clone();
        for at in 0..length as usize {
            let goal = goals.get(at).or(goals.last()).copied().unwrap_or(Formula::TRUE);
            let Some(values) = self.enumerated(goal, max_values)? else { return Ok(None) };
            if all.len() + last.len().saturating_mul(values.len()) > max_values {
                return Ok(None);
            }
            let longer = last.iter().flat_map(|items| {
                values.iter().map(move |value| items.iter().chain([value]).cloned().collect())
            });
            last = longer.collect();
            all.extend_from_slice(&last);
        }
        Ok(Some(all))
    }

    /// A superset of the objects of `formula`; `None` if it allows unlisted names.
    fn enumerated_objects(&mut self, formula: Formula, max_values: usize) -> Result<Option<Vec<Members>>> {
        let parts = self.formulas.conjuncts(formula);
        let closed = parts.iter().find_map(|&part| match self.formulas.as_leaf(part) {
            Some(Leaf::Others(except, below)) if *below == Formula::FALSE && except.patterns.is_empty() => {
                Some(except.names.clone())
            }
            _ => None,
        });
        let Some(names) = closed else { return Ok(None) };
        let mut all: Vec<Vec<(Arc<str>, Json)>> = vec![Vec::new()];
        for name in names {
            let (mut below, mut is_required) = (Vec::new(), false);
            for &part in parts.iter() {
                match self.formulas.as_leaf(part) {
                    Some(Leaf::Property(of, value)) if *of == name => below.push(*value),
                    Some(Leaf::Present(of)) => is_required |= *of == name,
                    _ => {}
                }
            }
            let below = self.formulas.and(below);
            let Some(values) = self.enumerated(below, max_values)? else { return Ok(None) };
            let choices = values.len() + usize::from(!is_required);
            if all.len().saturating_mul(choices) > max_values {
                return Ok(None);
            }
            let longer = all.iter().flat_map(|members| {
                let with =
                    |value: &Json| members.iter().cloned().chain([(name.clone(), value.clone())]).collect();
                let without = (!is_required).then(|| members.clone());
                values.iter().map(with).chain(without).collect::<Vec<_>>()
            });
            all = longer.collect();
        }
        let object = |members: Vec<(Arc<str>, Json)>| {
            members.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
        };
        Ok(Some(all.into_iter().map(object).collect()))
    }

    /// Handles `uniqueItems` with too many items: ignored if the options allow it, else rejected.
    fn without_unique(&mut self, leaf: Formula) -> Result<Formula> {
        if self.ignores(
            leaf,
            "no finite automaton remembers so many items: check the value after it was generated",
        ) {
            return Ok(Formula::TRUE);
        }
        let pointer = self.schema.origins.get(&leaf).cloned().unwrap_or_default();
        Err(Error::unenforceable(
            pointer,
            Unenforced::new(
                "uniqueItems",
                "no finite automaton remembers so many items",
                "list fewer values for them with `enum`, or lower `maxItems`",
            ),
        ))
    }
}

/// The number of sets of values that an array remembers before its last item.
fn sets(values: usize, max_items: Option<u64>) -> usize {
    let longest = max_items
        .map_or(values, |max_items| usize::try_from(max_items - 1).unwrap_or(usize::MAX).min(values));
    let (mut all, mut of_size) = (1usize, 1usize);
    for size in 1..=longest {
        // The division is exact: the dividend counts the lists of `size` different values up to the
        // order of the first `size - 1`.
        let Some(product) = of_size.checked_mul(values - size + 1) else { return usize::MAX };
        of_size = product / size;
        all = all.saturating_add(of_size);
        if all > MAX_STEPS {
            break;
        }
    }
    all
}
