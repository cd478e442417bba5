//! The order of properties, if alternatives declare them in different orders.
//!
//! The names of an object have one order for all alternatives. Each alternative declares some of
//! them, in its own order; an order consistent with all of these is used if one exists. Among
//! unconstrained names, the name declared first in the schema comes first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use super::Planner;
use crate::json_schema::formula::{Formula, Leaf, Term};

impl Planner<'_> {
    /// Reorders names from schema order to an order consistent with all alternatives, as far as one
    /// exists.
    pub(super) fn agreed(&self, names: Vec<Arc<str>>, residues: &[Formula]) -> Vec<Arc<str>> {
        let indices: HashMap<&str, usize> =
            names.iter().enumerate().map(|(index, name)| (&**name, index)).collect();
        let orders = self.orders(residues, &indices);
        if orders.iter().all(|order| order.is_sorted()) {
            return names;
        }
        // For each name, the names that some alternative declares next.
        let mut next: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); names.len()];
        let mut before = vec![0_usize; names.len()];
        for pair in orders.iter().flat_map(|order| order.windows(2)) {
            if pair[0] != pair[1] && next[pair[0]].insert(pair[1]) {
                before[pair[1]] += 1;
            }
        }
        let mut free: BinaryHeap<Reverse<usize>> =
            (0..names.len()).filter(|&index| before[index] == 0).map(Reverse).collect();
        let mut left: BTreeSet<usize> = (0..names.len()).collect();
        let mut agreed = Vec::with_capacity(names.len());
        // If alternatives contradict one another, the first declaration counts.
        while let Some(index) = free.pop().map(|Reverse(index)| index).or_else(|| left.first().copied()) {
            if !left.remove(&index) {
                continue;
            }
            agreed.push(Arc::clone(&names[index]));
            for &after in &next[index] {
                before[after] -= 1;
                if before[after] == 0 {
                    free.push(Reverse(after));
                }
            }
        }
        agreed
    }

    /// The indices of the names declared by each alternative, in its order, without names declared
    /// for all.
    fn orders(&self, residues: &[Formula], indices: &HashMap<&str, usize>) -> Vec<Vec<usize>> {
        let property = |&part: &Formula| match self.formulas.as_leaf(part) {
            Some(Leaf::Property(name, _)) => indices.get(&**name).copied(),
            _ => None,
        };
        let mut parts: Vec<Formula> = Vec::new();
        residues.iter().for_each(|&residue| parts.extend(&*self.formulas.conjuncts(residue)));
        let shared: HashSet<usize> = parts.iter().filter_map(property).collect();
        let mut seen: HashSet<Formula> = parts.iter().copied().collect();
        let mut orders = Vec::new();
        while let Some(part) = parts.pop() {
            let below = match self.formulas.term(part) {
                Term::Or(below) | Term::One(below) => below,
                Term::And(below) => {
                    orders.push(
                        below.iter().filter_map(property).filter(|index| !shared.contains(index)).collect(),
                    );
                    below
                }
                Term::Not(_) | Term::Leaf(_) | Term::Constant(_) => continue,
            };
            parts.extend(below.iter().filter(|part| seen.insert(**part)));
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Constraint, Limits};
    use crate::{JsonOptions, Order};

    fn object(names: &[&str]) -> Value {
        let properties = names.iter().map(|name| (name.to_string(), json!({"const": 1}))).collect();
        json!({"type": "object", "properties": Value::Object(properties), "required": names, "additionalProperties": false})
    }

    fn text(names: &[&str]) -> String {
        let members: Vec<String> = names.iter().map(|name| format!("{name:?}: 1")).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn accepts(schema: &Value, options: &JsonOptions, names: &[&str]) -> bool {
        let constraint = Constraint::json_schema_with(schema.clone(), options).unwrap();
        let dfa = constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap();
        dfa.matches(text(names).as_bytes())
    }

    #[test]
    fn alternatives_keep_their_orders_where_these_agree() {
        let orders: [&[&str]; 4] =
            [&["name", "city", "job"], &["a", "b"], &["kind", "city", "date"], &["b", "job"]];
        for keyword in ["anyOf", "oneOf"] {
            let schema = json!({ keyword: orders.map(object) });
            let options = JsonOptions::default();
            for names in orders {
                assert!(accepts(&schema, &options, names), "{keyword} {names:?}");
            }
            assert!(!accepts(&schema, &options, &["city", "name", "job"]));
            let required = options.with_order(Order::RequiredFirst);
            assert!(accepts(&schema, &required, orders[0]));
        }
    }

    #[test]
    fn the_first_declaration_counts_where_alternatives_contradict_one_another() {
        let schema = json!({"anyOf": [object(&["a", "b", "c"]), object(&["c", "a"]), object(&["d", "a"])]});
        let options = JsonOptions::default();
        assert!(accepts(&schema, &options, &["a", "c"]) && !accepts(&schema, &options, &["c", "a"]));
        assert!(accepts(&schema, &options, &["a", "b", "c"]));
    }

    #[test]
    fn properties_of_all_branches_come_in_declared_order() {
        let constant = json!({"const": 1});
        let schema = json!({
            "type": "object", "properties": {"a": constant, "b": constant}, "required": ["a", "b"],
            "anyOf": [{"properties": {"c": constant, "b": constant}, "required": ["c"]}, {"required": ["b"]}]
        });
        assert!(accepts(&schema, &JsonOptions::default(), &["a", "b", "c"]));
    }
}
