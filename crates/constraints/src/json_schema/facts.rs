//! Facts about the values of a schema that its formula shows without a plan.

use std::collections::HashSet;

use super::formula::{Formula, Formulas, Leaf, Term};
use super::{Additional, Schema, Types};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Error;

/// The possible values of a property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    /// The types, and perhaps more.
    pub(crate) types: Types,
    /// Whether all strings are allowed.
    pub(crate) any_string: bool,
}

impl Values {
    pub(crate) const ALL: Self = Self { types: Types::ALL, any_string: true };
    const NONE: Self = Self { types: Types::NONE, any_string: true };

    fn and(self, other: Self) -> Self {
        Self { types: self.types.and(other.types), any_string: self.any_string && other.any_string }
    }

    /// The values of either kind. A kind without strings does not restrict them.
    fn or(self, other: Self) -> Self {
        let free = |values: Self| values.any_string || !values.types.meets(Types::STRING);
        Self { types: self.types.or(other.types), any_string: free(self) && free(other) }
    }
}

impl Schema {
    /// The types of values, and perhaps more.
    pub(crate) fn types(&self) -> Types {
        self.types_of(self.root, &self.formulas)
    }

    /// The types of the values of a formula, and perhaps more.
    pub(super) fn types_of(&self, formula: Formula, formulas: &Formulas) -> Types {
        Facts::new(self, formulas).types(formula)
    }

    /// Whether all strings are sure to satisfy a formula.
    pub(super) fn has_all_strings(&self, formula: Formula, formulas: &Formulas) -> bool {
        Facts::new(self, formulas).has_all_strings(formula)
    }

    /// The values of the property `name` of objects.
    pub(crate) fn values_of(&self, name: &str) -> Values {
        Facts::new(self, &self.formulas).values(self.root, name)
    }
}

impl Schema {
    /// The claims on the whole value.
    fn claims(&self) -> Vec<(Formula, &Leaf)> {
        let leaves = self.formulas.clone().leaves(self.root);
        leaves.iter().filter_map(|&claim| Some((claim, self.formulas.as_leaf(claim)?))).collect()
    }

    /// The declared properties of objects.
    pub(crate) fn declared(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let claims = self.claims().into_iter();
        let names = claims.filter_map(|(_, leaf)| name_of(leaf)).filter(|name| seen.insert(*name));
        names.map(str::to_owned).collect()
    }

    /// Whether objects may have undeclared properties. They may not if this is false.
    pub(crate) fn may_have_others(&self) -> bool {
        let mut is_closed = self.options.additional == Additional::Closed && !self.declared().is_empty();
        for (claim, leaf) in self.claims() {
            match leaf {
                Leaf::Matching(..) => return true,
                Leaf::Others(_, Formula::FALSE) => {
                    is_closed |= self.formulas.conjuncts(self.root).contains(&claim)
                }
                Leaf::Others(..) => return true,
                _ => {}
            }
        }
        !is_closed
    }

    /// An error with the location of a declared property.
    pub(crate) fn error_of(&self, name: &str, reason: String) -> Error {
        let claims = self.claims().into_iter();
        let mut of_name = claims.filter(|(_, leaf)| name_of(leaf) == Some(name));
        let origin = of_name.find_map(|(claim, _)| self.origins.get(&claim));
        Error::schema(origin.cloned().unwrap_or_default(), reason)
    }
}

/// The property that a claim declares.
fn name_of(leaf: &Leaf) -> Option<&str> {
    match leaf {
        Leaf::Property(name, _) | Leaf::Present(name) => Some(name),
        _ => None,
    }
}

/// Facts of formulas, each computed once.
struct Facts<'s> {
    schema: &'s Schema,
    formulas: &'s Formulas,
    types: FastMap<Formula, Types>,
    values: FastMap<Formula, Values>,
}

impl<'s> Facts<'s> {
    fn new(schema: &'s Schema, formulas: &'s Formulas) -> Self {
        Self { schema, formulas, types: FastMap::default(), values: FastMap::default() }
    }

    fn types(&mut self, formula: Formula) -> Types {
        if let Some(&known) = self.types.get(&formula) {
            return known;
        }
        // Within itself, a recursive schema may have all types.
        self.types.insert(formula, Types::ALL);
        let types = match self.formulas.term(formula).clone() {
            Term::Constant(true) => Types::ALL,
            Term::Constant(false) => Types::NONE,
            Term::And(parts) => parts.iter().fold(Types::ALL, |types, &part| types.and(self.types(part))),
            Term::Or(parts) | Term::One(parts) => {
                parts.iter().fold(Types::NONE, |types, &part| types.or(self.types(part)))
            }
            Term::Not(inner) => match self.formulas.as_leaf(inner) {
                Some(Leaf::Types(types)) => Types::ALL.except(*types),
                _ => Types::ALL,
            },
            Term::Leaf(Leaf::Types(types)) => types,
            Term::Leaf(Leaf::Values(values)) => values.iter().map(Types::of).fold(Types::NONE, Types::or),
            Term::Leaf(Leaf::Later(number)) => match self.schema.later.get(number as usize) {
                Some(&later) => self.types(later),
                None => Types::ALL,
            },
            Term::Leaf(_) => Types::ALL,
        };
        self.types.insert(formula, types);
        types
    }

    /// Whether all strings are sure to satisfy a formula.
    fn has_all_strings(&mut self, formula: Formula) -> bool {
        match self.formulas.term(formula).clone() {
            Term::Constant(truth) => truth,
            Term::And(parts) => parts.iter().all(|&part| self.has_all_strings(part)),
            Term::Or(parts) => parts.iter().any(|&part| self.has_all_strings(part)),
            Term::One(parts) => {
                let strings = parts.iter().filter(|&&part| self.types(part).meets(Types::STRING));
                match strings.copied().collect::<Vec<_>>()[..] {
                    [only] => self.has_all_strings(only),
                    _ => false,
                }
            }
            Term::Not(inner) => !self.types(inner).meets(Types::STRING),
            Term::Leaf(leaf) => match leaf {
                Leaf::Types(types) => types.meets(Types::STRING),
                Leaf::Values(_) | Leaf::Pattern(_) | Leaf::Length { .. } | Leaf::Format(_) => false,
                Leaf::Later(_) => false,
                _ => true,
            },
        }
    }

    /// The values of the property `name` of the objects that satisfy a formula.
    fn values(&mut self, formula: Formula, name: &str) -> Values {
        if let Some(&known) = self.values.get(&formula) {
            return known;
        }
        let values = match self.formulas.term(formula).clone() {
            Term::Constant(false) => Values::NONE,
            Term::And(parts) => self.conjunction(&parts, name),
            Term::Or(parts) | Term::One(parts) => {
                parts.iter().fold(Values::NONE, |values, &part| values.or(self.values(part, name)))
            }
            Term::Leaf(Leaf::Types(types)) if !types.meets(Types::OBJECT) => Values::NONE,
            Term::Leaf(Leaf::Property(of, below)) if *of == *name => self.any(below),
            Term::Leaf(leaf) => other(&leaf, name).map_or(Values::ALL, |below| self.any(below)),
            Term::Constant(true) | Term::Not(_) => Values::ALL,
        };
        self.values.insert(formula, values);
        values
    }

    /// The values of the property `name` under several claims. Matching a name against a pattern
    /// takes an automaton, so an undeclared property has the values of any claim that may be about
    /// it.
    fn conjunction(&mut self, parts: &[Formula], name: &str) -> Values {
        let (mut values, mut others) = (Values::ALL, None);
        let mut is_declared = false;
        for &part in parts {
            let leaf = self.formulas.as_leaf(part);
            is_declared |= leaf.is_some_and(|leaf| name_of(leaf) == Some(name));
            match leaf.and_then(|leaf| other(leaf, name)) {
                Some(below) => others = Some(others.unwrap_or(Values::NONE).or(self.any(below))),
                None => values = values.and(self.values(part, name)),
            }
        }
        match others {
            Some(others) if !is_declared => values.and(others),
            _ => values,
        }
    }

    /// The values of a formula.
    fn any(&mut self, formula: Formula) -> Values {
        Values { types: self.types(formula), any_string: self.has_all_strings(formula) }
    }
}

/// The formula of the property `name`, if it is undeclared and a claim on undeclared properties may
/// be about it.
fn other(leaf: &Leaf, name: &str) -> Option<Formula> {
    match leaf {
        Leaf::Matching(_, below) => Some(*below),
        Leaf::Others(except, below) if except.names.iter().all(|of| **of != *name) => Some(*below),
        _ => None,
    }
}
