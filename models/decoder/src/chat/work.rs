//! Counts the work of operations that minijinja counts as one step each.
//!
//! Comparing, searching and slicing take time in proportion to their operands, and lists that share
//! their items are larger than their memory: after `{% set x = [x, x] %}` sixty times, comparing
//! `x` with an equal list would never end. So operations that read values count their bytes and
//! items first, up to [`MAX_WORK`](super::budget::MAX_WORK) in one rendering. Values that contain
//! themselves cannot be made.

use std::sync::Arc;

use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};

use super::budget::{MAX_DEPTH, counted, spend, take, wrong};

/// The number of bytes that an item of a list or a map counts as, and the additional bytes of a
/// list or a map.
const ITEM: usize = 16;
const CONTAINER: usize = 112;

/// Filters that read whole texts, and the greatest ratio of the length of the result to the text.
const OF_TEXTS: [(&str, usize); 17] = [
    ("lower", 1),
    ("upper", 1),
    ("title", 1),
    ("capitalize", 1),
    ("length", 0),
    ("count", 0),
    ("first", 0),
    ("last", 0),
    ("reverse", 1),
    ("trim", 1),
    ("int", 0),
    ("float", 0),
    ("escape", 6),
    ("e", 6),
    ("urlencode", 3),
    ("items", 0),
    ("bool", 0),
];

/// Filters that compare the items of a list.
const OF_ITEMS: [&str; 5] = ["dictsort", "min", "max", "sort", "unique"];

fn is_container(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable)
}

/// Charges reading a value, but not the items of its items.
pub(crate) fn read(value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => spend(text.len()),
        None if is_container(value) => spend(value.len().unwrap_or(0).saturating_mul(ITEM)),
        None => Ok(()),
    }
}

/// Charges reading everything that a value holds, once per occurrence.
///
/// # Errors
/// Too much work, or values nested deeper than [`MAX_DEPTH`].
pub(crate) fn weigh(value: &Value) -> Result<(), Error> {
    let mut rest = vec![(value.clone(), 0)];
    while let Some((value, depth)) = rest.pop() {
        if let Some(text) = value.as_str() {
            spend(text.len())?;
        }
        if !is_container(&value) {
            continue;
        }
        spend(CONTAINER)?;
        if depth == MAX_DEPTH {
            return Err(wrong(&format!("its values are nested more than {MAX_DEPTH} levels deep")));
        }
        for item in value.try_iter()? {
            spend(ITEM)?;
            if value.kind() == ValueKind::Map {
                rest.push((value.get_item(&item)?, depth + 1));
            }
            rest.push((item, depth + 1));
        }
    }
    Ok(())
}

/// Charges a comparison. It ends with the smaller value. Values that are nested deeply are not
/// compared.
fn compare(left: &Value, right: &Value) -> Result<(), Error> {
    match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) => spend(left.len().min(right.len())),
        _ if is_container(left) && is_container(right) => weigh(left).and_then(|()| weigh(right)),
        _ => Ok(()),
    }
}

/// Refuses a list or a map as a key, like Python.
fn check_key(key: &Value) -> Result<(), Error> {
    if is_container(key) { Err(wrong("a list or a map is no key")) } else { Ok(()) }
}

/// Charges the search for a value.
fn search(value: &Value, within: &Value) -> Result<(), Error> {
    match within.kind() {
        ValueKind::Map => check_key(value),
        ValueKind::Seq | ValueKind::Iterable if is_container(value) => weigh(within),
        _ => read(value).and_then(|()| read(within)),
    }
}

/// Charges the values that a method reads.
pub(crate) fn method(value: &Value, name: &str, arguments: &[Value]) -> Result<(), Error> {
    read(value)?;
    arguments.iter().try_for_each(read)?;
    match (value.as_str(), name, arguments) {
        (None, "get", [key, ..]) => check_key(key),
        (None, "count", [item]) => search(item, value),
        (Some(text), "split" | "rsplit" | "splitlines", _) => charge_substrings(text, arguments),
        _ => Ok(()),
    }
}

/// Charges the memory of the parts of a text.
fn charge_substrings(text: &str, arguments: &[Value]) -> Result<(), Error> {
    let mark = arguments.first().and_then(Value::as_str).filter(|mark| !mark.is_empty());
    let max = arguments.iter().find_map(Value::as_usize).unwrap_or(usize::MAX);
    let count = match mark {
        Some(mark) => text.matches(mark).take(max).count(),
        None => text.split_whitespace().take(max).count().max(text.matches('\n').count()),
    };
    take((count + 1).saturating_mul(4 * size_of::<Value>()))
}

/// Replaces operators, filters and tests by versions that count their work.
pub(crate) fn bind(environment: &mut Environment<'_>) {
    macro_rules! comparisons {
        ($($operator:tt: $($name:literal),*;)*) => {
            $(
                let test = |left: &Value, right: &Value| compare(left, right).map(|()| left $operator right);
                environment.add_filter(stringify!($operator), test);
                $(environment.add_test($name, test);)*
            )*
        };
    }
    comparisons! {
        ==: "==", "eq", "equalto";
        !=: "!=", "ne";
        <: "<", "lt", "lessthan";
        <=: "<=", "le";
        >: ">", "gt", "greaterthan";
        >=: ">=", "ge";
    }
    let contains = |state: &State, value: &Value, within: &Value| {
        search(value, within)?;
        if within.as_object().is_none() && within.as_str().is_none() && !within.is_undefined() {
            return Err(wrong("cannot perform a containment check on this value"));
        }
        minijinja::tests::is_in(state, value, within)
    };
    environment.add_filter("in", contains);
    environment.add_test("in", contains);
    environment.add_test("sameas", |left: &Value, right: &Value| {
        read(left)?;
        Ok::<_, Error>(minijinja::tests::is_sameas(left, right))
    });
    for (name, is_case) in [
        ("lower", minijinja::tests::is_lower as fn(&Value) -> bool),
        ("upper", minijinja::tests::is_upper as fn(&Value) -> bool),
    ] {
        environment.add_test(name, move |value: &Value| read(value).map(|()| is_case(value)));
    }
    environment.add_filter("~read", |value: Value| read(&value).map(|()| value));
    environment.add_filter("~weigh", |value: Value| weigh(&value).map(|()| value));
    environment.add_filter("~keep", |value: Value| keep(&value).map(|()| value));
    environment.add_filter("[]", item);
    environment.add_filter("[:]", slice);
    environment.add_filter("{}", map);
    environment.add_filter("*,", splat);

    let plain = Arc::new(Environment::new());
    for (name, times) in OF_TEXTS {
        let plain = Arc::clone(&plain);
        environment.add_filter(name, move |arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            arguments.iter().try_for_each(read)?;
            let length = arguments.first().and_then(Value::as_str).map_or(0, str::len);
            take(length.saturating_mul(times))?;
            plain.empty_state().apply_filter(name, &arguments)
        });
    }
    for name in OF_ITEMS {
        let plain = Arc::clone(&plain);
        environment.add_filter(name, move |arguments: Rest<ValueOrKwargs>| {
            let arguments = arguments.into_values();
            arguments.iter().try_for_each(weigh)?;
            counted(plain.empty_state().apply_filter(name, &arguments)?)
        });
    }
    environment.add_filter("split", move |arguments: Rest<ValueOrKwargs>| {
        let arguments = arguments.into_values();
        arguments.iter().try_for_each(read)?;
        if let Some(text) = arguments.first().and_then(Value::as_str) {
            charge_substrings(text, &arguments[1..])?;
            take(text.len())?;
        }
        plain.empty_state().apply_filter("split", &arguments)
    });
    // The output of `debug` is not counted.
    environment.remove_global("debug");
}

/// Charges reading a value that is to be stored in a namespace. The value must not hold a
/// namespace: a namespace that held itself would have no end.
fn keep(value: &Value) -> Result<(), Error> {
    let mut rest = vec![value.clone()];
    while let Some(value) = rest.pop() {
        if !is_container(&value) {
            continue;
        }
        spend(CONTAINER)?;
        if value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace")) {
            return Err(wrong("a namespace is not kept in another one"));
        }
        for item in value.try_iter()? {
            spend(ITEM)?;
            if value.kind() == ValueKind::Map {
                rest.push(value.get_item(&item)?);
            }
            rest.push(item);
        }
    }
    Ok(())
}

fn item(value: &Value, key: &Value) -> Result<Value, Error> {
    check_key(key)?;
    if value.as_str().is_some() || value.kind() == ValueKind::Iterable {
        read(value)?;
    }
    value.get_item(key)
}

/// A map of alternating keys and values.
fn map(parts: Rest<Value>) -> Result<Value, Error> {
    let mut members = Vec::with_capacity(parts.len() / 2);
    for pair in parts.chunks_exact(2) {
        check_key(&pair[0])?;
        members.push((pair[0].clone(), pair[1].clone()));
    }
    Ok(Value::from_pairs(members))
}

/// The items of lists, for a call.
fn splat(lists: Rest<Value>) -> Result<Value, Error> {
    let mut items = Vec::new();
    for list in lists.iter() {
        read(list)?;
        for item in list.try_iter()? {
            take(2 * size_of::<Value>())?;
            items.push(item);
        }
    }
    Ok(Value::from(items))
}

/// The result of `value[start:stop:step]` in Python; nothing has no items.
fn slice(value: &Value, start: Value, stop: Value, step: Value) -> Result<Value, Error> {
    let number = |value: Value| (!value.is_none()).then(|| i64::try_from(value)).transpose();
    let (start, stop, step) = (number(start)?, number(stop)?, number(step)?.unwrap_or(1));
    if step == 0 {
        return Err(wrong("a slice has steps of 0"));
    }
    read(value)?;
    if let Some(text) = value.as_str() {
        if step == 1 {
            let within = indices(start, stop, 1, text.chars().count());
            let (from, count) = (within.first, within.count);
            let from = text.char_indices().nth(from as usize).map_or(text.len(), |(at, _)| at);
            let rest = &text[from..];
            let length = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
            take(length)?;
            return Ok(Value::from(&rest[..length]));
        }
        take(text.len().saturating_mul(2 * size_of::<char>()))?;
        let chars: Vec<char> = text.chars().collect();
        let within = indices(start, stop, step, chars.len());
        return Ok(Value::from(within.map(|at| chars[at]).collect::<String>()));
    }
    if value.is_none() || value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(wrong(&format!("value of type {} cannot be sliced", value.kind())));
    }
    let items: Vec<Value> = value.try_iter()?.collect();
    let within: Vec<Value> = indices(start, stop, step, items.len()).map(|at| items[at].clone()).collect();
    take(within.len().saturating_mul(2 * size_of::<Value>()))?;
    Ok(if value.is_tuple() { Tuple::from(within).into() } else { Value::from(within) })
}

/// The indices of a slice.
struct Indices {
    first: i64,
    count: usize,
    step: i64,
}

fn indices(start: Option<i64>, stop: Option<i64>, step: i64, length: usize) -> Indices {
    let length = length as i64;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let within = |at: i64| (if at < 0 { at.saturating_add(length) } else { at }).clamp(low, high);
    let (first, end) = if step > 0 { (low, high) } else { (high, low) };
    let (first, end) = (start.map_or(first, within), stop.map_or(end, within));
    let distance = if step > 0 { end - first } else { first - end };
    let count = (distance.max(0) as u64).div_ceil(step.unsigned_abs()) as usize;
    Indices { first, count, step }
}

impl Iterator for Indices {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let at = self.first;
        self.first = at.saturating_add(self.step);
        Some(at as usize)
    }
}
