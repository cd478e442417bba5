//! Reads the keywords `type`, `enum` and `const`.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Gathered, Reader};
use crate::json_schema::MAX_DEPTH;
use crate::json_schema::formula::Leaf;
use crate::json_schema::json::{Json, Members};
use crate::json_schema::types::Types;
use burn_dfa_common::{Error, Result};

impl<'a> Reader<'a> {
    pub(super) fn types(&mut self, map: &Members, gathered: &mut Gathered) -> Result<()> {
        let named = |token: &[&str], value: &Json| {
            value.as_str().and_then(Types::named).ok_or_else(|| {
                self.error_below(
                    token,
                    "a type is one of `null`, `boolean`, `integer`, `number`, `string`, `array`, `object`",
                )
            })
        };
        let types = match map.get("type") {
            None => return Ok(()),
            Some(Json::Array(list)) if list.is_empty() => {
                return Err(self.error_at("type", "a list of types has one at least"));
            }
            Some(Json::Array(list)) => {
                list.iter().enumerate().try_fold(Types::NONE, |types, (i, value)| {
                    Ok::<_, Error>(types.or(named(&["type", &i.to_string()], value)?))
                })?
            }
            Some(value) => named(&["type"], value)?,
        };
        let claim = self.formulas.leaf(Leaf::Types(types));
        self.claim(gathered, &["type"], claim);
        Ok(())
    }

    /// `enum` and `const`.
    pub(super) fn values(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        // Copying and comparing values is recursive, so their depth is bounded.
        let json = |tokens: &[&str], value: &Json| {
            if value.is_deeper_than(MAX_DEPTH) {
                return Err(self.error_below(tokens, format!("values are nested more than {MAX_DEPTH} deep")));
            }
            Ok(value.clone())
        };
        let mut claims: Vec<(&str, Arc<[Json]>)> = Vec::new();
        if let Some(value) = self.keyword(map, "const") {
            claims.push(("const", [json(&["const"], value)?].into()));
        }
        match map.get("enum") {
            None => {}
            Some(Json::Array(listed)) => {
                let mut seen = HashSet::new();
                let mut values = Vec::with_capacity(listed.len());
                for (i, value) in listed.iter().enumerate() {
                    let value = json(&["enum", &i.to_string()], value)?;
                    if seen.insert(value.clone()) {
                        values.push(value);
                    }
                }
                claims.push(("enum", values.into()));
            }
            Some(other) => return Err(self.other_than("enum", "a list of values", other)),
        }
        for (name, values) in claims {
            let claim = self.formulas.leaf(Leaf::Values(values));
            self.claim(gathered, &[name], claim);
        }
        Ok(())
    }
}
