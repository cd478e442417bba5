//! Facts about the values of a schema, read off its formula without automata of values.

use super::formula::{Formula, Formulas, Leaf, Term};
use super::{Schema, Types};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Limits, limits::Meter};

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
        Facts { schema: self, formulas, types: FastMap::default(), values: FastMap::default() }.types(formula)
    }

    /// Whether all strings are sure to satisfy a formula.
    pub(super) fn has_all_strings(&self, formula: Formula, formulas: &Formulas) -> bool {
        Facts { schema: self, formulas, types: FastMap::default(), values: FastMap::default() }
            .has_all_strings(formula)
    }

    /// The values of the property `name` of objects.
    pub(crate) fn values_of(&self, name: &str) -> Values {
        let formulas = &self.formulas;
        let mut facts =
            Facts { schema: self, formulas, types: FastMap::default(), values: FastMap::default() };
        facts.values(self.root, name)
    }
}

/// Facts of formulas, each computed once.
struct Facts<'s> {
    schema: &'s Schema,
    formulas: &'s Formulas,
    types: FastMap<Formula, Types>,
    values: FastMap<Formula, Values>,
}

impl Facts<'_> {
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
            Term::And(parts) => {
                parts.iter().fold(Values::ALL, |values, &part| values.and(self.values(part, name)))
            }
            Term::Or(parts) | Term::One(parts) => {
                parts.iter().fold(Values::NONE, |values, &part| values.or(self.values(part, name)))
            }
            Term::Leaf(leaf) => {
                let below = match leaf {
                    Leaf::Types(types) if !types.meets(Types::OBJECT) => Some(Formula::FALSE),
                    Leaf::Property(of, below) if *of == *name => Some(below),
                    Leaf::Matching(pattern, below) if matches(&pattern, name) => Some(below),
                    Leaf::Others(except, below)
                        if !except.names.iter().any(|of| **of == *name)
                            && !except.patterns.iter().any(|pattern| matches(pattern, name)) =>
                    {
                        Some(below)
                    }
                    _ => None,
                };
                match below {
                    Some(below) => {
                        Values { types: self.types(below), any_string: self.has_all_strings(below) }
                    }
                    None => Values::ALL,
                }
            }
            Term::Constant(true) | Term::Not(_) => Values::ALL,
        };
        self.values.insert(formula, values);
        values
    }
}

/// Whether a pattern matches a name; a pattern that exceeds a limit is assumed to.
fn matches(pattern: &super::ecma::Pattern, name: &str) -> bool {
    let limits = Limits::default();
    pattern.lower(&Meter::start(&limits)).map_or(true, |dfa| dfa.matches(name.as_bytes()))
}
