//! Objects: their properties in order, or in any order.

use std::sync::Arc;

use super::super::free_text::automaton;
use super::names::{declared, listed, only, without};
use super::schema::SchemaCursor;
use super::value::{ANY, OF_ARRAYS, OF_OBJECTS, TRUE, Writer};
use crate::json_schema::Json;
use crate::{Additional, Deferred, Expression};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// Most declared properties in any order: each set of them has a rule.
const MAX_UNORDERED: usize = 10;

/// Most sets of properties of all objects of a structural tag.
const MAX_SETS: usize = 1 << 16;

/// Most declared properties with a counted number.
const MAX_COUNTED: usize = 16;

/// The properties of an object.
struct Properties {
    /// The declared properties, and whether each is required.
    declared: Vec<(Expression, bool)>,
    /// Any one other.
    other: Option<Expression>,
    min: usize,
    max: Option<usize>,
}

impl<'s> Writer<'_, 's> {
    /// An object, as JSON or as elements.
    pub(super) fn object(&mut self, spot: &SchemaCursor<'s>, json: bool) -> Result<Expression> {
        spot.check(&[&OF_OBJECTS[..], &OF_ARRAYS[..]].concat())?;
        let properties = self.properties(spot, json)?;
        let members = match self.any_order {
            true => self.unordered(spot, &properties, json)?,
            false => self.ordered(spot, &properties)?,
        };
        let space = self.space();
        Ok(if json {
            Expression::sequence([Expression::literal("{"), members, space, Expression::literal("}")])
        } else {
            Expression::sequence([members, space])
        })
    }

    fn properties(&mut self, spot: &SchemaCursor<'s>, json: bool) -> Result<Properties> {
        let required: Vec<&'s str> = match spot.json.get("required") {
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let named = spot.get("properties").map(|named| named.members()).unwrap_or_default();
        let properties = spot.json.get("properties");
        let is_declared = |name: &str| properties.is_some_and(|of| of.get(name).is_some());
        if let Some(missing) = required.iter().find(|name| !is_declared(name)) {
            return Err(spot.error(format!(
                "{missing:?} is required, and no property of this name is declared; declare it under `properties`"
            )));
        }
        let required: FastMap<&str, ()> = required.into_iter().map(|name| (name, ())).collect();
        let patterns = spot.get("patternProperties").map(|of| of.members()).unwrap_or_default();
        let mut named_by = Vec::with_capacity(named.len());
        let mut declared_properties = Vec::with_capacity(named.len());
        let allowed = spot.get("propertyNames").map(|_| self.names(spot, json));
        // The names matched by patterns: by patterns with the schema false, by other patterns, and
        // by all patterns.
        let (mut forbidden, mut matched, mut all_matched) = (Vec::new(), Vec::new(), Vec::new());
        for (pattern, of) in &patterns {
            if json {
                return Err(of.error("`patternProperties` is not offered where properties come in any order"));
            }
            let names = self.matched(of, pattern)?;
            all_matched.push(names.clone());
            match of.json {
                Json::Boolean(false) => forbidden.push(names),
                _ => matched.push((names, of)),
            }
        }
        let all_matched: Arc<[Deferred]> = all_matched.into();
        for (name, of) in &named {
            let own = self.named(name, json);
            let text = if json { own.clone() } else { self.markup.name(name) };
            named_by.push(own.clone());
            if *of.json == Json::Boolean(false) && !required.contains_key(name) {
                continue;
            }
            let is_free = allowed.is_none() && all_matched.is_empty();
            let text = if is_free {
                Expression::bytes(&text)
            } else {
                let wrong = self.error(of, "in this style the name of a declared property is allowed by `propertyNames`, and matches none of `patternProperties`");
                automaton(declared((*name, own, text), allowed.clone(), Arc::clone(&all_matched), wrong))
            };
            let property = self.property(text, of, json)?;
            declared_properties.push((property, required.contains_key(name)));
        }
        let is_open = match spot.json.get("additionalProperties") {
            Some(Json::Boolean(value)) => *value,
            Some(_) => true,
            None => {
                let declares = spot.json.get("properties").is_some() || !patterns.is_empty();
                !(declares && self.options.additional == Additional::Closed)
            }
        };
        if !json {
            self.check_ends(&named, is_open || !patterns.is_empty())?;
        }
        let mut others = Vec::new();
        if is_open || !patterns.is_empty() {
            forbidden.push(listed(named_by));
            let rest = without(&allowed.unwrap_or_else(|| self.names(spot, json)), forbidden.into());
            let names: Arc<[Deferred]> = matched.iter().map(|(names, _)| names.clone()).collect();
            for (i, (_, of)) in matched.iter().enumerate() {
                let wrong = self.error(of, "in this style no name may match several of `patternProperties`");
                let names = self.written(only(&rest, &names, i, wrong), json);
                others.push(self.property(automaton(names), of, json)?);
            }
            let rest = self.written(without(&rest, names), json);
            if is_open {
                let any = SchemaCursor { json: &TRUE, at: ANY.to_owned() };
                let of = spot.get("additionalProperties").filter(|of| matches!(of.json, Json::Object(_)));
                others.push(self.property(automaton(rest), &of.unwrap_or(any), json)?);
            }
        }
        let min = spot.count("minProperties").unwrap_or(0);
        let other = (!others.is_empty()).then(|| Expression::choice(others));
        Ok(Properties { declared: declared_properties, other, min, max: spot.count("maxProperties") })
    }

    /// Rejects a declared name that contains the end marker of names, if another name ends there.
    fn check_ends(&self, named: &[(&'s str, SchemaCursor<'s>)], has_others: bool) -> Result<()> {
        for (name, of) in named {
            let written = self.markup.name(name);
            let is_shorter = |(other, _): &(&str, SchemaCursor)| {
                let ended = [&self.markup.name(other)[..], self.markup.named.as_bytes()].concat();
                other != name && [&written[..], self.markup.named.as_bytes()].concat().starts_with(&ended)
            };
            if self.markup.ends_within(&written) && (has_others || named.iter().any(is_shorter)) {
                return Err(of.error(format!(
                    "in this style {:?} ends a name, which this name holds, so that it may be another one; rename the property",
                    self.markup.named
                )));
            }
        }
        Ok(())
    }

    /// A property: its name, already written, and its value.
    fn property(&mut self, name: Expression, of: &SchemaCursor<'s>, json: bool) -> Result<Expression> {
        let space = self.space();
        if json {
            let (colon, value) = (Expression::literal(":"), self.json(of)?);
            return Ok(Expression::sequence([space.clone(), name, space.clone(), colon, space, value]));
        }
        let open = Expression::literal(self.markup.open);
        Ok(Expression::sequence([space, open, name, self.value(of)?]))
    }

    /// Properties in any order, each once at most.
    fn unordered(
        &mut self,
        spot: &SchemaCursor<'s>,
        properties: &Properties,
        json: bool,
    ) -> Result<Expression> {
        let Properties { declared, other, min, max } = properties;
        if declared.len() > MAX_UNORDERED {
            return Err(spot.error(format!(
                "more than {MAX_UNORDERED} properties that may come in any order; leave `any_order` out"
            )));
        }
        if other.is_some() && (*min > 0 || max.is_some()) {
            return Err(spot.error(
                "where properties come in any order and others than the declared ones may come, they are not counted",
            ));
        }
        *self.sets += 1 << declared.len();
        if *self.sets > MAX_SETS {
            return Err(spot.error(format!(
                "more than {MAX_SETS} sets of properties that may come in any order, in all objects; leave `any_order` out"
            )));
        }
        self.members += 1;
        let prefix =
            format!("{}_{}_{}", self.prefix, if json { "members" } else { "elements" }, self.members);
        let name = |mask: usize, begun: bool| format!("{prefix}_{begun}_{mask:b}");
        let mut properties = Vec::with_capacity(declared.len());
        for (i, (property, _)) in declared.iter().enumerate() {
            properties.push(self.rule(&format!("{prefix}_{}", i + 1), property.clone())?);
        }
        let comma = Expression::sequence([self.space(), Expression::literal(",")]);
        for mask in 0..1usize << declared.len() {
            for begun in [false, true] {
                if mask != 0 && !begun {
                    continue;
                }
                let before = if json && begun { comma.clone() } else { Expression::literal("") };
                let mut ways = Vec::new();
                for (i, property) in properties.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 0) {
                    if max.is_some_and(|max| mask.count_ones() as usize >= max) {
                        break;
                    }
                    let next = self.builder.rule(&name(mask | 1 << i, true));
                    ways.push(Expression::sequence([before.clone(), property.clone(), next]));
                }
                if let Some(other) = other {
                    let next = self.builder.rule(&name(mask, true));
                    ways.push(Expression::sequence([before, other.clone(), next]));
                }
                let complete =
                    declared.iter().enumerate().all(|(i, (_, required))| !required || mask >> i & 1 == 1);
                if complete && mask.count_ones() as usize >= *min {
                    ways.push(Expression::literal(""));
                }
                self.builder.define(&name(mask, begun), Expression::choice(ways))?;
            }
        }
        Ok(self.builder.rule(&name(0, false)))
    }

    /// Properties in the order in which they are declared, and then others.
    fn ordered(&mut self, spot: &SchemaCursor, properties: &Properties) -> Result<Expression> {
        let Properties { declared, other, min, max } = properties;
        let required = declared.iter().filter(|(_, required)| *required).count();
        let most = if other.is_some() { None } else { Some(declared.len()) };
        let counts = *min > required || max.is_some_and(|max| most.is_none_or(|most| max < most));
        if !counts {
            let mut parts: Vec<Expression> = declared
                .iter()
                .map(|(property, required)| match required {
                    true => property.clone(),
                    false => property.clone().repeat(0, Some(1)),
                })
                .collect();
            parts.extend(other.clone().map(|other| other.repeat(0, None)));
            return Ok(Expression::sequence(parts));
        }
        if declared.len() > MAX_COUNTED {
            return Err(spot.error(format!(
                "more than {MAX_COUNTED} declared properties are not counted in this style"
            )));
        }
        let exactly = self.counted(declared)?;
        let mut ways = Vec::new();
        for (count, some) in exactly.into_iter().enumerate() {
            if max.is_some_and(|max| count > max) || (other.is_none() && count < *min) {
                continue;
            }
            let Some(some) = some else { continue };
            let others = match other {
                None => Expression::literal(""),
                Some(_) if *max == Some(count) => Expression::literal(""),
                Some(other) => other.clone().repeat(min.saturating_sub(count), max.map(|max| max - count)),
            };
            ways.push(Expression::sequence([some, others]));
        }
        Ok(Expression::choice(ways))
    }

    /// Exactly a given number of properties, in order, by number; `None` if fewer than the required
    /// ones or more than all.
    fn counted(&mut self, declared: &[(Expression, bool)]) -> Result<Vec<Option<Expression>>> {
        self.members += 1;
        let prefix = format!("{}_counted_{}", self.prefix, self.members);
        // Of the properties from one on, by count.
        let mut behind = vec![None; declared.len() + 1];
        behind[0] = Some(Expression::literal(""));
        for (i, (property, required)) in declared.iter().enumerate().rev() {
            let property = self.rule(&format!("{prefix}_{}", i + 1), property.clone())?;
            let mut from = Vec::with_capacity(behind.len());
            for count in 0..behind.len() {
                let with = count.checked_sub(1).and_then(|rest| behind[rest].clone());
                let with = with.map(|rest| Expression::sequence([property.clone(), rest]));
                let ways: Vec<Expression> =
                    with.into_iter().chain(behind[count].clone().filter(|_| !required)).collect();
                from.push(match ways.is_empty() {
                    true => None,
                    false => {
                        Some(self.rule(&format!("{prefix}_{}_{count}", i + 1), Expression::choice(ways))?)
                    }
                });
            }
            behind = from;
        }
        Ok(behind)
    }
}
