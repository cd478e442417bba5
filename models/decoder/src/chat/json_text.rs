//! The filter `tojson` of chat templates, which writes JSON like Python's `json.dumps`, but does
//! not escape characters beyond ASCII.
//!
//! The filter of minijinja is made for HTML: it writes `<` and `'` as escapes, which no model was
//! trained on.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::budget::{self, MAX_DEPTH};

/// The separators of JSON.
struct Style {
    /// Separates two items.
    item: String,
    /// Separates a name and its value.
    name: String,
    /// Indentation of each item on its line, once for each level; `None`: everything is one line.
    indent: Option<String>,
}

impl Style {
    /// Writes a value at a nesting level.
    fn write(&self, value: &Value, level: usize, to: &mut String) -> Result<(), Error> {
        if level > MAX_DEPTH {
            return Err(wrong(&format!("values are nested more than {MAX_DEPTH} levels")));
        }
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => to.push_str("null"),
            ValueKind::Bool => to.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => to.push_str(&value.to_string()),
            ValueKind::Number => to.push_str(&text(&f64::try_from(value.clone())?)?),
            ValueKind::String => to.push_str(&text(value.as_str().unwrap_or_default())?),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.items(['[', ']'], items, level, to, |item, to| self.write(&item, level + 1, to))?;
            }
            ValueKind::Map => {
                let names: Vec<Value> = value.try_iter()?.collect();
                self.items(['{', '}'], names, level, to, |name, to| {
                    to.push_str(&text(&name.to_string())?);
                    to.push_str(&self.name);
                    self.write(&value.get_item(&name)?, level + 1, to)
                })?;
            }
            kind => return Err(wrong(&format!("{kind} is no JSON"))),
        }
        Ok(())
    }

    fn items(
        &self,
        [open, close]: [char; 2],
        items: Vec<Value>,
        level: usize,
        to: &mut String,
        mut write: impl FnMut(Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        to.push(open);
        let is_empty = items.is_empty();
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                to.push_str(&self.item);
            }
            self.line(level + 1, to);
            let before = to.len();
            write(item, to)?;
            budget::take(to.len() - before)?;
        }
        if !is_empty {
            self.line(level, to);
        }
        to.push(close);
        Ok(())
    }

    fn line(&self, level: usize, to: &mut String) {
        if let Some(indent) = &self.indent {
            to.push('\n');
            to.push_str(&indent.repeat(level));
        }
    }
}

fn text(value: &(impl serde::Serialize + ?Sized)) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| wrong(&error.to_string()))
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {what}"))
}

/// The filter, with the arguments that transformers gives it: `indent`, `separators`, and
/// `ensure_ascii` and `sort_keys` if they are false.
pub(crate) fn tojson(value: &Value, indent: Option<Value>, arguments: Kwargs) -> Result<Value, Error> {
    for name in ["ensure_ascii", "sort_keys"] {
        if arguments.get::<Option<bool>>(name)? == Some(true) {
            return Err(wrong(&format!("`{name}` is not offered")));
        }
    }
    let indent = match indent {
        Some(indent) => Some(indent),
        None => arguments.get::<Option<Value>>("indent")?,
    };
    let indent = match indent.filter(|indent| !indent.is_none()) {
        None => None,
        Some(indent) if indent.kind() == ValueKind::String => Some(indent.to_string()),
        Some(indent) => Some(" ".repeat(usize::try_from(indent)?.min(16))),
    };
    let separators = arguments.get::<Option<Vec<String>>>("separators")?;
    let (item, name) = match separators.as_deref() {
        // As in Python: no space after the last comma of a line.
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([item, name]) => (item.clone(), name.clone()),
        Some(_) => return Err(wrong("`separators` are two texts")),
    };
    arguments.assert_all_used()?;
    let mut written = String::new();
    Style { item, name, indent }.write(value, 0, &mut written)?;
    Ok(Value::from_safe_string(written))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ChatTemplate;

    fn written(arguments: &str) -> String {
        let tool = json!({"b": {"x": [1, 2.5, true, null], "e": {}, "n": []}, "a": "it's <é>\n"});
        let source = format!("{{{{ tools[0] | tojson{arguments} }}}}");
        let template = ChatTemplate::new(source).expect("it is a template");
        template.render_json(&[], &[tool], false).expect("it renders")
    }

    #[test]
    fn json_is_what_python_writes() {
        let plain = r#"{"b": {"x": [1, 2.5, true, null], "e": {}, "n": []}, "a": "it's <é>\n"}"#;
        assert_eq!(written(""), plain);
        assert_eq!(written("(ensure_ascii=false)"), plain);
        let compact = r#"{"b":{"x":[1,2.5,true,null],"e":{},"n":[]},"a":"it's <é>\n"}"#;
        assert_eq!(written("(separators=(',', ':'))"), compact);
        let lines = "{\n  \"b\": {\n    \"x\": [\n      1,\n      2.5,\n      true,\n      null\n    ],\n    \"e\": {},\n    \"n\": []\n  },\n  \"a\": \"it's <é>\\n\"\n}";
        assert_eq!(written("(indent=2)"), lines);
        assert_eq!(written("(2)"), lines);
    }
}
