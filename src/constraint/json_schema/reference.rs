//! `$ref`: from a reference to the place and the schema that it names.
//!
//! References are local: a fragment that is a JSON pointer (RFC 6901, percent-encoded), with or without the
//! root's own `$id` before it. A subschema with an `$id` of its own is another document; references inside
//! it would count from there, and are refused.

use serde_json::Value;

/// Where a reference leads.
pub(super) struct Target<'a> {
    /// JSON pointer of the schema, as written in plain form.
    pub(super) pointer: String,
    pub(super) schema: &'a Value,
    /// Whether the way there enters a subschema with an `$id` of its own.
    pub(super) embedded: bool,
}

/// Follows `reference` from `root`; the error is the reason.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Result<Target<'a>, String> {
    let Some((document, fragment)) = reference.split_once('#') else {
        return Err(elsewhere(reference));
    };
    if !document.is_empty() && base(root) != Some(document) {
        return Err(elsewhere(reference));
    }
    let fragment = percent_decode(fragment)
        .ok_or_else(|| format!("the reference {reference:?} is not percent-encoded UTF-8"))?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return Err(format!(
            "the reference {reference:?} names an anchor, which is not offered; use a JSON pointer such as `#/$defs/name`"
        ));
    }

    let mut target = Target { pointer: String::new(), schema: root, embedded: false };
    for token in fragment.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        target.schema = step(target.schema, &name).ok_or_else(|| {
            format!("the reference {reference:?} leads nowhere: {:?} has no {name:?}", target.pointer)
        })?;
        push(&mut target.pointer, &name);
        target.embedded |= is_embedded(target.schema);
    }
    Ok(target)
}

/// Whether a schema that is not the root is a document of its own. An `$id` that is a mere fragment is an
/// anchor of older drafts.
pub(super) fn is_embedded(schema: &Value) -> bool {
    let id = |name| schema.get(name).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
    id("$id") || id("id")
}

/// Appends a reference token to a JSON pointer.
pub(super) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

fn elsewhere(reference: &str) -> String {
    format!(
        "the reference {reference:?} leaves the schema; copy its target into `$defs` and refer to `#/$defs/…`"
    )
}

/// The root's identifier, without an empty fragment.
fn base(root: &Value) -> Option<&str> {
    let id = root.get("$id").or_else(|| root.get("id"))?.as_str()?;
    Some(id.strip_suffix('#').unwrap_or(id)).filter(|id| !id.is_empty())
}

fn step<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => {
            let plain = name == "0" || !name.starts_with(['0', '+']);
            items.get(name.parse::<usize>().ok().filter(|_| plain)?)
        }
        _ => None,
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
