//! Restricts a formula to values of one kind: leaves about other kinds become true, and lists of
//! values are divided.

use std::sync::Arc;

use super::{Kind, Planner};
use crate::json_schema::formula::{Except, Formula, Formulas, Leaf};
use crate::json_schema::json::Json;
use crate::json_schema::types::Types;

impl Planner<'_> {
    /// The formula equivalent to `formula` for values of one kind.
    pub(super) fn narrow(&mut self, formula: Formula, kind: Kind) -> Formula {
        if let Some(&known) = self.narrowed.get(&(formula, kind as u8)) {
            return known;
        }
        let narrowed = self.formulas.replace(formula, &mut |formulas, leaf| {
            let leaf = formulas.as_leaf(leaf)?.clone();
            let of = match &leaf {
                Leaf::Types(types) => return Some(of_kind(formulas, *types, kind)),
                Leaf::Values(values) => return Some(values_of(formulas, values, kind)),
                Leaf::Pattern(_) | Leaf::Length { .. } | Leaf::Format(_) => Kind::String,
                Leaf::Integer | Leaf::AtLeast { .. } | Leaf::AtMost { .. } | Leaf::MultipleOf(_) => {
                    Kind::Number
                }
                Leaf::Present(_)
                | Leaf::Property(..)
                | Leaf::Matching(..)
                | Leaf::Others(..)
                | Leaf::Names(_)
                | Leaf::Properties { .. } => Kind::Object,
                Leaf::Item(..)
                | Leaf::Rest(..)
                | Leaf::Contains(..)
                | Leaf::Items(_)
                | Leaf::Unique { .. } => Kind::Array,
                Leaf::Later(_) => return None,
            };
            (of != kind).then_some(Formula::TRUE)
        });
        self.narrowed.insert((formula, kind as u8), narrowed);
        narrowed
    }
}

/// The formula of `type` for values of one kind.
fn of_kind(formulas: &mut Formulas, types: Types, kind: Kind) -> Formula {
    match kind {
        Kind::Number => match (types.meets(Types::INTEGER), types.meets(Types::FRACTION)) {
            (true, true) => Formula::TRUE,
            (false, false) => Formula::FALSE,
            (integer, _) => {
                let leaf = formulas.leaf(Leaf::Integer);
                if integer { leaf } else { formulas.not(leaf) }
            }
        },
        Kind::String => Formula::constant(types.meets(Types::STRING)),
        Kind::Array => Formula::constant(types.meets(Types::ARRAY)),
        Kind::Object => Formula::constant(types.meets(Types::OBJECT)),
    }
}

/// The formula of `enum` for values of one kind: scalars are listed, arrays and objects are
/// described by formulas.
fn values_of(formulas: &mut Formulas, values: &[Json], kind: Kind) -> Formula {
    let types = match kind {
        Kind::Number => Types::NUMBER,
        Kind::String => Types::STRING,
        Kind::Array => Types::ARRAY,
        Kind::Object => Types::OBJECT,
    };
    let of_kind: Vec<&Json> = values.iter().filter(|value| Types::of(value).meets(types)).collect();
    if matches!(kind, Kind::Number | Kind::String) {
        return formulas.leaf(Leaf::Values(of_kind.into_iter().cloned().collect()));
    }
    let described: Vec<Formula> = of_kind.into_iter().map(|value| described(formulas, value)).collect();
    formulas.or(described)
}

/// The formula of one array or object, by its parts.
fn described(formulas: &mut Formulas, value: &Json) -> Formula {
    let mut claims = Vec::new();
    match value {
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let item = formulas.leaf(Leaf::Values([item.clone()].into()));
                claims.push(formulas.leaf(Leaf::Item(at as u64, item)));
            }
            let count = items.len() as u64;
            claims.push(formulas.leaf(Leaf::Items(count)));
            let more = formulas.leaf(Leaf::Items(count + 1));
            claims.push(formulas.not(more));
        }
        Json::Object(members) => {
            let mut except = Except::default();
            for (name, member) in members {
                let name: Arc<str> = name.as_str().into();
                let member = formulas.leaf(Leaf::Values([member.clone()].into()));
                claims.push(formulas.leaf(Leaf::Property(Arc::clone(&name), member)));
                claims.push(formulas.leaf(Leaf::Present(Arc::clone(&name))));
                except.names.push(name);
            }
            claims.push(formulas.leaf(Leaf::Others(except.into(), Formula::FALSE)));
        }
        _ => {}
    }
    formulas.and(claims)
}
