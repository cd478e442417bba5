//! Objects: their properties in order, or in any order.

use super::names::{both, expression, listed, without};
use super::schema::Spot;
use super::value::{ANY, OF_ARRAYS, OF_OBJECTS, TRUE, Writer};
use crate::constraint::json_schema::Json;
use crate::constraint::{Additional, Expression};
use crate::error::Result;

/// Most declared properties that may come in any order: there is a rule for each set of them.
const MAX_UNORDERED: usize = 10;

/// Most declared properties whose number is counted.
const MAX_COUNTED: usize = 16;

/// The properties of an object.
struct Properties {
    /// Those that are declared, and whether each is required.
    declared: Vec<(Expression, bool)>,
    /// Any one other.
    other: Option<Expression>,
    min: usize,
    max: Option<usize>,
}

impl<'s> Writer<'_, 's> {
    /// An object, as JSON or as elements.
    pub(super) fn object(&mut self, spot: &Spot<'s>, json: bool) -> Result<Expression> {
        spot.check(&[&OF_OBJECTS[..], &OF_ARRAYS[..]].concat())?;
        let properties = self.properties(spot, json)?;
        let members = match self.any_order {
            true => self.unordered(spot, &properties, json)?,
            false => ordered(spot, &properties)?,
        };
        let space = self.space();
        Ok(if json {
            Expression::sequence([Expression::literal("{"), members, space, Expression::literal("}")])
        } else {
            Expression::sequence([members, space])
        })
    }

    fn properties(&mut self, spot: &Spot<'s>, json: bool) -> Result<Properties> {
        let required: Vec<&'s str> = match spot.json.get("required") {
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let named = spot.get("properties").map(|named| named.members()).unwrap_or_default();
        if let Some(missing) = required.iter().find(|name| !named.iter().any(|(known, _)| known == *name)) {
            return Err(spot.error(format!(
                "{missing:?} is required, and no property of this name is declared; declare it under `properties`"
            )));
        }
        let patterns = spot.get("patternProperties").map(|of| of.members()).unwrap_or_default();
        let mut written = Vec::with_capacity(named.len());
        let mut declared = Vec::with_capacity(named.len());
        let allowed = match spot.get("propertyNames") {
            Some(_) => Some(self.names(spot, json)?),
            None => None,
        };
        let mut matched = Vec::with_capacity(patterns.len());
        for (pattern, of) in &patterns {
            if json {
                return Err(of.error("`patternProperties` is not offered where properties come in any order"));
            }
            matched.push(self.matched(of, pattern)?);
        }
        for (name, of) in &named {
            let text = self.written(name, json);
            let is_matched = matched.iter().any(|names| names.matches(name.as_bytes()));
            if is_matched || allowed.as_ref().is_some_and(|names| !names.matches(&text)) {
                return Err(of.error(
                    "in this style the name of a declared property is allowed by `propertyNames`, and matches none of `patternProperties`",
                ));
            }
            written.push(text.clone());
            if *of.json == Json::Boolean(false) && !required.contains(name) {
                continue;
            }
            let property = self.property(Expression::bytes(&text), of, json)?;
            declared.push((property, required.contains(name)));
        }
        let mut others = Vec::new();
        let is_open = match spot.json.get("additionalProperties") {
            Some(Json::Boolean(value)) => *value,
            Some(_) => true,
            None => {
                let declares = spot.json.get("properties").is_some() || !patterns.is_empty();
                !(declares && self.options.additional == Additional::Closed)
            }
        };
        if is_open || !patterns.is_empty() {
            let mut rest = without(&self.names(spot, json)?, &listed(written)?)?;
            for (i, (_, of)) in patterns.iter().enumerate() {
                let names = both(&rest, &matched[i])?;
                if matched[i + 1..].iter().any(|other| both(&names, other).is_ok_and(|both| !both.is_empty()))
                {
                    return Err(of.error("in this style no name may match several of `patternProperties`"));
                }
                if !names.is_empty() && *of.json != Json::Boolean(false) {
                    others.push(self.property(expression(names), of, json)?);
                }
            }
            for names in &matched {
                rest = without(&rest, names)?;
            }
            if is_open && !rest.is_empty() {
                let any = Spot { json: &TRUE, at: ANY.to_owned() };
                let of = spot.get("additionalProperties").filter(|of| matches!(of.json, Json::Object(_)));
                others.push(self.property(expression(rest), &of.unwrap_or(any), json)?);
            }
        }
        let min = spot.count("minProperties").unwrap_or(0);
        let other = (!others.is_empty()).then(|| Expression::choice(others));
        Ok(Properties { declared, other, min, max: spot.count("maxProperties") })
    }

    /// A property: its name, which is written already, and its value.
    fn property(&mut self, name: Expression, of: &Spot<'s>, json: bool) -> Result<Expression> {
        let space = self.space();
        if json {
            let (colon, value) = (Expression::literal(":"), self.json(of)?);
            return Ok(Expression::sequence([space.clone(), name, space.clone(), colon, space, value]));
        }
        let open = Expression::literal(self.markup.open);
        Ok(Expression::sequence([space, open, name, self.value(of)?]))
    }

    /// Properties in any order, each once at most.
    fn unordered(&mut self, spot: &Spot<'s>, properties: &Properties, json: bool) -> Result<Expression> {
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
        let name =
            |mask: usize, begun: bool| format!("{}_{begun}_{mask:b}", spot_name(self.prefix, spot, json));
        let comma = Expression::sequence([self.space(), Expression::literal(",")]);
        for mask in 0..1usize << declared.len() {
            for begun in [false, true] {
                if mask != 0 && !begun {
                    continue;
                }
                let before = if json && begun { comma.clone() } else { Expression::literal("") };
                let mut ways = Vec::new();
                for (i, (property, _)) in declared.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 0) {
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
}

fn spot_name(prefix: &str, spot: &Spot, json: bool) -> String {
    format!("{prefix}_{}_{}", if json { "members" } else { "elements" }, spot.at)
}

/// Properties in the order in which they are declared, and then others.
fn ordered(spot: &Spot, properties: &Properties) -> Result<Expression> {
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
        return Err(
            spot.error(format!("more than {MAX_COUNTED} declared properties are not counted in this style"))
        );
    }
    let mut ways = Vec::new();
    for count in required..=declared.len() {
        if max.is_some_and(|max| count > max) || (other.is_none() && count < *min) {
            continue;
        }
        let Some(some) = exactly(declared, count) else { continue };
        let others = match other {
            None => Expression::literal(""),
            Some(_) if *max == Some(count) => Expression::literal(""),
            Some(other) => other.clone().repeat(min.saturating_sub(count), max.map(|max| max - count)),
        };
        ways.push(Expression::sequence([some, others]));
    }
    Ok(Expression::choice(ways))
}

/// Exactly so many of some properties, in order.
fn exactly(declared: &[(Expression, bool)], count: usize) -> Option<Expression> {
    match declared {
        [] => (count == 0).then(|| Expression::literal("")),
        [(property, required)] => match count {
            0 => (!required).then(|| Expression::literal("")),
            1 => Some(property.clone()),
            _ => None,
        },
        more => {
            let (first, last) = more.split_at(more.len() / 2);
            let ways = (0..=count).filter_map(|some| {
                Some(Expression::sequence([exactly(first, some)?, exactly(last, count - some)?]))
            });
            let ways: Vec<Expression> = ways.collect();
            (!ways.is_empty()).then(|| Expression::choice(ways))
        }
    }
}
