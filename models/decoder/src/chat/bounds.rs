//! Limits of chat templates. A template comes with a model, from anywhere, so it is not trusted.
//!
//! - *Steps*: minijinja counts the instructions, [`FUEL`].
//! - *Stack*: a thread with a stack of [`STACK`] bytes compiles and renders the template. The
//!   deepest values that [`FUEL`] instructions can build fit this stack. Written values have at
//!   most [`MAX_DEPTH`](budget::MAX_DEPTH) levels.
//! - *Memory*: operators, filters and methods that make texts and lists count their bytes first, up
//!   to [`MAX_BYTES`](budget::MAX_BYTES) in one rendering. minijinja implements operators as
//!   instructions, not functions, so the compiled template is changed, see [`steps`](super::steps):
//!   `a ~ b` becomes `a | ~(b)`, and the filter `~` counts.
//! - *Work*: a step may look at much text, or at many items that lists share, see
//!   [`work`](super::work).

use std::fmt::{self, Write};
use std::thread;

use minijinja::machinery::{CodeGenerator, Token, ast, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::budget::{self, counted, take, written, wrong};
use super::{steps, work};

/// Instructions that a template may execute.
pub(crate) const FUEL: u64 = 3_000_000;
/// Bytes of text outside values that a template may write.
const MAX_RAW: u64 = 1 << 30;
/// Bytes of a template.
const MAX_SOURCE: usize = 128 << 10;
/// Greatest number of tokens in one tag. The compiler takes quadratic time for nested expressions.
const MAX_TOKENS: usize = 2_000;
/// Bytes of the stack.
const STACK: usize = 512 << 20;
/// The variable that multiplies constants, so that the compiler does not fold products of constants
/// before their bytes are counted.
const ONE: &str = "__one";

/// Does some work on a thread with a large stack and the full byte budget.
pub(crate) fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let bounded = move || {
        budget::begin();
        work()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("template".into()).stack_size(STACK);
        let thread = thread.spawn_scoped(scope, bounded).map_err(|error| error.to_string())?;
        thread.join().unwrap_or_else(|_| Err("the template engine panicked".into()))
    })
}

/// Adds a non-constant factor to every multiplication of the source.
///
/// # Errors
/// The source is too long or malformed, or a tag has too many tokens.
pub(crate) fn prepared(source: &str, syntax: &SyntaxConfig) -> Result<String, Error> {
    if source.len() > MAX_SOURCE {
        let message = format!("it has {} bytes, of {MAX_SOURCE} that it may have", source.len());
        return Err(Error::new(ErrorKind::SyntaxError, message));
    }
    let (mut prepared, mut copied, mut is_operand) = (String::with_capacity(source.len()), 0, false);
    let mut tokens = 0;
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token?;
        tokens = if matches!(token, Token::VariableStart | Token::BlockStart) { 0 } else { tokens + 1 };
        if tokens > MAX_TOKENS {
            let message = format!("it has a tag of more than {MAX_TOKENS} tokens");
            return Err(Error::new(ErrorKind::SyntaxError, message));
        }
        if matches!(token, Token::Mul) && is_operand {
            let end = span.end_offset as usize;
            prepared.push_str(&source[copied..end]);
            prepared.push_str(ONE);
            prepared.push('*');
            copied = end;
        }
        // A star after an opening parenthesis or a comma unpacks arguments.
        is_operand = !matches!(token, Token::ParenOpen | Token::Comma);
    }
    Ok(prepared + &source[copied..])
}

/// Checks that a prepared source compiles.
///
/// # Errors
/// The source is not a valid template.
pub(crate) fn check(name: &str, source: &str, syntax: &SyntaxConfig) -> Result<(), Error> {
    let template = parse(source, name, syntax.clone())?;
    CodeGenerator::new(name, source).compile_stmt(&template);
    Ok(())
}

/// Renders a template whose source was [prepared].
pub(crate) fn render(
    environment: &Environment<'_>,
    name: &str,
    source: &str,
    syntax: &SyntaxConfig,
    root: Value,
) -> Result<String, Error> {
    let template: ast::Stmt<'_> = parse(source, name, syntax.clone())?;
    let mut generator = CodeGenerator::new(name, source);
    generator.compile_stmt(&template);
    let (mut instructions, mut blocks) = generator.finish();
    let mut longest = 1;
    for instructions in blocks.values_mut().chain([&mut instructions]) {
        longest = longest.max(steps::count(instructions) as u64);
    }
    let mut environment = environment.clone();
    environment.set_fuel(Some(FUEL.min(MAX_RAW / longest)));
    let mut text = String::new();
    let mut output = minijinja::machinery::make_string_output(&mut text);
    minijinja::machinery::eval(
        &environment,
        &instructions,
        root,
        &blocks,
        &mut output,
        minijinja::AutoEscape::None,
    )?;
    drop(output);
    Ok(text)
}

/// Replaces operators, filters and methods by versions that count their bytes.
pub(crate) fn bind(environment: &mut Environment<'_>) {
    work::bind(environment);
    environment.add_global(ONE, Value::from(1));
    environment.add_filter("~", concat);
    environment.add_filter("+", add);
    environment.add_filter("*", multiply);
    environment.add_filter("replace", replace);
    environment.add_filter("join", join);
    environment.add_filter("indent", indent);
    environment.add_filter("list", |state: &State, value: Value| {
        if let Some(text) = value.as_str() {
            take(text.len().saturating_mul(4 * size_of::<Value>()))?;
        }
        counted(minijinja::filters::list(state, value)?)
    });
    environment.add_filter("sum", |values: Value| {
        let mut sum = Value::from(0);
        for value in values.try_iter()? {
            sum = add(&sum, &value)?;
        }
        Ok::<_, Error>(sum)
    });
    // Remove filters that no known template uses, since their work would have to be counted.
    for name in ["batch", "chain", "format", "groupby", "lines", "pprint", "slice", "zip"] {
        environment.remove_filter(name);
    }
    environment.set_unknown_method_callback(|state, value, method, arguments| {
        work::method(value, method, arguments)?;
        match (value.as_str(), method, arguments) {
            (Some(text), "replace", [old, new]) => replace(text, text_of(old)?, text_of(new)?),
            (Some(text), "join", [values]) => joined(values, Some(&Value::from(text)), None),
            (Some(text), "replace", [..]) => {
                // Assumes a replacement at every byte, which is an upper bound.
                let new = arguments.get(1).and_then(Value::as_str).unwrap_or_default();
                take((text.len() + 1).saturating_mul(new.len().max(1)))?;
                minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
            }
            (Some(text), "format", _) => {
                if text.split(|char: char| !char.is_ascii_digit()).any(|digits| digits.len() > 4) {
                    return Err(wrong("a format has a number above 9999"));
                }
                let longest = arguments
                    .iter()
                    .map(|argument| written(|to| write!(to, "{argument}")).map(|text| text.len()));
                let longest = longest.collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or(0);
                take(text.len() + text.matches('{').count().saturating_mul(longest + 10_000))?;
                minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
            }
            _ => counted(minijinja_contrib::pycompat::unknown_method_callback(
                state, value, method, arguments,
            )?),
        }
    });
}

fn text_of(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| wrong("a text is wanted"))
}

fn concat(left: &Value, right: &Value) -> Result<Value, Error> {
    written(|to| write!(to, "{left}{right}")).map(Value::from)
}

fn add(left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        take(left.len() + right.len())?;
        return Ok(Value::from([left, right].concat()));
    }
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if is_list(left) && is_list(right) && left.is_tuple() == right.is_tuple() {
        let mut items = Vec::new();
        for item in left.try_iter()?.chain(right.try_iter()?) {
            take(2 * size_of::<Value>())?;
            items.push(item);
        }
        return Ok(if left.is_tuple() { Tuple::from(items).into() } else { Value::from(items) });
    }
    if left.kind() == ValueKind::Number && right.kind() == ValueKind::Number {
        return arithmetic(left, right, i128::checked_add, |left, right| left + right);
    }
    Err(wrong(&format!("tried to use + operator on unsupported types {} and {}", left.kind(), right.kind())))
}

fn arithmetic(
    left: &Value,
    right: &Value,
    exact: impl Fn(i128, i128) -> Option<i128>,
    about: impl Fn(f64, f64) -> f64,
) -> Result<Value, Error> {
    if !left.is_integer() || !right.is_integer() {
        return Ok(Value::from(about(f64::try_from(left.clone())?, f64::try_from(right.clone())?)));
    }
    let result = exact(i128::try_from(left.clone())?, i128::try_from(right.clone())?);
    let result = result.ok_or_else(|| wrong("a number is too large"))?;
    Ok(i64::try_from(result).map_or_else(|_| Value::from(result), Value::from))
}

fn multiply(left: &Value, right: &Value) -> Result<Value, Error> {
    let times = |value: &Value, other: &Value| {
        let times = other.as_usize().filter(|_| value.kind() != ValueKind::Number);
        times.ok_or_else(|| {
            wrong(&format!(
                "tried to use * operator on unsupported types {} and {}",
                left.kind(),
                right.kind()
            ))
        })
    };
    if left.kind() == ValueKind::Number && right.kind() == ValueKind::Number {
        return arithmetic(left, right, i128::checked_mul, |left, right| left * right);
    }
    let (value, times) = match left.kind() {
        ValueKind::Number => (right, times(right, left)?),
        _ => (left, times(left, right)?),
    };
    if let Some(text) = value.as_str() {
        take(text.len().saturating_mul(times))?;
        return Ok(Value::from(text.repeat(times)));
    }
    let items: Vec<Value> = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.collect(),
        kind => return Err(wrong(&format!("tried to use * operator on unsupported type {kind}"))),
    };
    take(items.len().saturating_mul(times).saturating_mul(2 * size_of::<Value>()))?;
    let items: Vec<Value> = std::iter::repeat_n(items, times).flatten().collect();
    Ok(if value.is_tuple() { Tuple::from(items).into() } else { Value::from(items) })
}

fn replace(text: &str, old: &str, new: &str) -> Result<Value, Error> {
    take(text.len().saturating_add(text.matches(old).count().saturating_mul(new.len())))?;
    Ok(Value::from(text.replace(old, new)))
}

fn join(values: Value, joiner: Option<Value>, arguments: Kwargs) -> Result<Value, Error> {
    let attribute = arguments.get::<Option<String>>("attribute")?;
    arguments.assert_all_used()?;
    joined(&values, joiner.as_ref(), attribute.as_deref())
}

fn joined(values: &Value, joiner: Option<&Value>, attribute: Option<&str>) -> Result<Value, Error> {
    let text = written(|to| {
        for (index, value) in values.try_iter().map_err(|_| fmt::Error)?.enumerate() {
            if let Some(joiner) = joiner.filter(|_| index > 0) {
                write!(to, "{joiner}")?;
            }
            match attribute {
                None => write!(to, "{value}")?,
                Some(name) => write!(to, "{}", value.get_attr(name).map_err(|_| fmt::Error)?)?,
            }
        }
        Ok(())
    });
    text.map(Value::from)
}

fn indent(
    text: &str,
    width: Option<usize>,
    indent_first_line: Option<bool>,
    indent_blank_lines: Option<bool>,
    arguments: Kwargs,
) -> Result<Value, Error> {
    let given = |own: Option<bool>, name: &str| {
        Ok::<_, Error>(own.or(arguments.get::<Option<bool>>(name)?).unwrap_or(false))
    };
    let width = width.or(arguments.get::<Option<usize>>("width")?).unwrap_or(4);
    let (first, blank) = (given(indent_first_line, "first")?, given(indent_blank_lines, "blank")?);
    arguments.assert_all_used()?;
    let lines = text.split('\n').count();
    take(text.len().saturating_add(lines.saturating_mul(width)))?;
    let space = " ".repeat(width);
    let mut indented = String::new();
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            indented.push('\n');
        }
        if if index == 0 { first } else { blank || !line.is_empty() } {
            indented.push_str(&space);
        }
        indented.push_str(line);
    }
    Ok(Value::from(indented))
}
