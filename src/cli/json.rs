//! How to write the JSON of schemas, and which keywords to ignore.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::constraint::{JsonOptions, Unenforceable, Whitespace};

/// How to write JSON if a schema leaves it open, and which keywords to ignore.
#[derive(Args, Clone, Debug, Default)]
pub struct JsonArgs {
    /// White space between the tokens of JSON. Default: spaced; within structural tags flexible.
    #[arg(long, value_name = "STYLE", value_parser = styles())]
    whitespace: Option<Whitespace>,
    /// Ignore `uniqueItems`, `minProperties` and `maxProperties` if no automaton can enforce them,
    /// instead of refusing the schema. Check the generated values afterwards.
    #[arg(long)]
    ignore_unenforceable: bool,
}

impl JsonArgs {
    /// Overrides `options` with the arguments.
    pub fn over(&self, options: JsonOptions) -> JsonOptions {
        let options = match self.whitespace {
            Some(whitespace) => options.with_whitespace(whitespace),
            None => options,
        };
        match self.ignore_unenforceable {
            true => options.with_unenforceable(Unenforceable::Ignore),
            false => options,
        }
    }

    /// Whether to ignore unenforceable keywords.
    pub fn ignores_unenforceable(&self) -> bool {
        self.ignore_unenforceable
    }

    /// Sets the default `whitespace`.
    pub fn or_whitespace(&mut self, whitespace: Whitespace) {
        self.whitespace.get_or_insert(whitespace);
    }
}

/// The styles by their names, which help and completions list.
fn styles() -> impl TypedValueParser<Value = Whitespace> {
    let styles = Whitespace::NAMED.map(|(name, style)| {
        PossibleValue::new(name).help(match style {
            Whitespace::Compact => "None".to_owned(),
            Whitespace::Spaced => "One space after `,` and `:`, as Python's `json.dumps` writes".to_owned(),
            Whitespace::Pretty(indent) => format!("Lines, {indent} spaces a level"),
            Whitespace::Flexible(max) => format!("Up to {max} spaces, tabs and line ends anywhere"),
            _ => name.to_owned(),
        })
    });
    PossibleValuesParser::new(styles).try_map(|name| name.parse::<Whitespace>())
}
