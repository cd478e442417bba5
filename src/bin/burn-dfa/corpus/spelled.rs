//! Values in their given spellings.
//!
//! A schema determines the order of properties and the white space. Numbers keep their text: `10.0`
//! and `10` have the same value, but a schema may allow only one of the two texts.

/// The text `written` of a value, with the spelling of the numbers in `given`, another text of the
/// same value. With `strings`, strings also take the spelling of `given`. `None` if one of the
/// texts is not JSON.
pub fn spelled(written: &str, given: &str, strings: bool) -> Option<String> {
    let (value, given) = (Cursor(written).value()?, Cursor(given).value()?);
    let mut scalars = Vec::new();
    spellings(&value, Some(&given), strings, &mut scalars);
    // The text between scalars stays.
    let mut text = String::with_capacity(written.len());
    let mut rest = Cursor(written);
    for scalar in scalars {
        let between = rest.0.find(|c| !" \t\n\r,:[]{}".contains(c))?;
        let (between, after) = rest.0.split_at(between);
        rest.0 = after;
        rest.scalar()?;
        text.extend([between, scalar]);
    }
    text.push_str(rest.0);
    Some(text)
}

/// The spellings of the scalars of `value` in order, names included, taken from `given`, another
/// text of the value.
fn spellings<'t>(value: &Value<'t>, given: Option<&Value<'t>>, strings: bool, all: &mut Vec<&'t str>) {
    match value {
        Value::Scalar(own) => all.push(match given {
            Some(Value::Scalar(given)) if strings || !given.starts_with('"') => given,
            _ => own,
        }),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let given = given.and_then(|given| match given {
                    Value::Array(items) => items.get(at),
                    _ => None,
                });
                spellings(item, given, strings, all);
            }
        }
        Value::Object(members) => {
            let decoded = |name: &str| serde_json::from_str::<String>(name).ok();
            for (name, member) in members {
                let given = given.and_then(|given| match given {
                    Value::Object(members) => {
                        members.iter().find(|(given, _)| given == name || decoded(given) == decoded(name))
                    }
                    _ => None,
                });
                all.push(given.filter(|_| strings).map_or(name, |(given, _)| given));
                spellings(member, given.map(|(_, member)| member), strings, all);
            }
        }
    }
}

/// A value by the texts of its parts.
enum Value<'t> {
    /// A number, a string or a word.
    Scalar(&'t str),
    Array(Vec<Value<'t>>),
    /// Names, as spelled, and values.
    Object(Vec<(&'t str, Value<'t>)>),
}

/// The rest of a JSON text.
struct Cursor<'t>(&'t str);

impl<'t> Cursor<'t> {
    fn value(&mut self) -> Option<Value<'t>> {
        self.space();
        match self.0.as_bytes().first()? {
            b'[' => {
                let mut items = Vec::new();
                self.parts(']', |cursor| {
                    items.push(cursor.value()?);
                    Some(())
                })?;
                Some(Value::Array(items))
            }
            b'{' => {
                let mut members = Vec::new();
                self.parts('}', |cursor| {
                    let name = cursor.scalar()?;
                    cursor.space();
                    cursor.take(':')?;
                    members.push((name, cursor.value()?));
                    Some(())
                })?;
                Some(Value::Object(members))
            }
            _ => self.scalar().map(Value::Scalar),
        }
    }

    /// The parts of an array or an object, from its first character to the closing one.
    fn parts(&mut self, close: char, mut part: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.0 = &self.0[1..];
        self.space();
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            self.space();
            part(self)?;
            self.space();
            if self.take(',').is_none() {
                return self.take(close);
            }
        }
    }

    fn scalar(&mut self) -> Option<&'t str> {
        let bytes = self.0.as_bytes();
        let end = if bytes.first() == Some(&b'"') {
            let mut at = 1;
            while *bytes.get(at)? != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        } else {
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            bytes.iter().position(|byte| !is_word(byte)).unwrap_or(bytes.len())
        };
        let (scalar, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        (!scalar.is_empty()).then_some(scalar)
    }

    fn space(&mut self) -> &'t str {
        let rest = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let space = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        space
    }

    fn take(&mut self, character: char) -> Option<()> {
        self.0 = self.0.strip_prefix(character)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn scalars_keep_their_spelling() {
        let respelled = |written, given, strings| spelled(written, given, strings).unwrap();
        let given = r#" {"b" : [10.0, 1E+2,-0.0] ,"\u0061":{"c":1.50, "d": "\u0065"}}"#;
        let written = r#"{"a": {"c": 1.5, "d": "e"}, "b": [10, 100, 0]}"#;
        assert_eq!(
            respelled(written, given, false),
            r#"{"a": {"c": 1.50, "d": "e"}, "b": [10.0, 1E+2, -0.0]}"#
        );
        assert_eq!(
            respelled(written, given, true),
            r#"{"\u0061": {"c": 1.50, "d": "\u0065"}, "b": [10.0, 1E+2, -0.0]}"#
        );
        assert_eq!(respelled("[\n  1,\n  [],\n  {}\n]", "[1e0,[],{}]", true), "[\n  1e0,\n  [],\n  {}\n]");
        assert_eq!(respelled(r#"{"a]\"}":"x, 1"}"#, r#"{"a]\"}":"x, 1"}"#, false), r#"{"a]\"}":"x, 1"}"#);
        assert_eq!(respelled("true", " true ", false), "true");
        for broken in ["", "[1", "{\"a\":}", "\"a"] {
            assert_eq!(spelled(broken, broken, true), None, "{broken}");
        }
    }
}
