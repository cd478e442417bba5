//! The style of JSON if requests leave it open.

use burn_dfa::Constraint;
use burn_dfa::constraint::{
    JsonOptions, RegexOptions, RequestOptions, StructuralTag, Tools, Unenforceable, Whitespace,
};

use crate::config::Config;

/// The style of JSON if requests leave it open.
#[derive(Clone, Debug)]
pub(super) struct JsonStyle {
    /// White space; `None`: the default of the library, and of each format of calls.
    whitespace: Option<Whitespace>,
}

impl JsonStyle {
    /// The style of a configuration. The embedded model has a specific style.
    pub(super) fn new(config: &Config) -> Self {
        let of_model = config.model.is_none().then_some(burn_dfa_tiny::WHITESPACE);
        Self { whitespace: config.whitespace.or(of_model) }
    }

    /// The same style with other white space.
    pub(super) fn with_whitespace(self, whitespace: Whitespace) -> Self {
        Self { whitespace: Some(whitespace) }
    }

    /// The constraint of the text of a request; `None` for plain text.
    pub(super) fn read(
        &self,
        request: &str,
        unenforceable: Unenforceable,
    ) -> burn_dfa::Result<Option<Constraint>> {
        let options = RequestOptions::new()
            .with_regexes(RegexOptions::new().with_ascii_classes(true))
            .with_json(self.over(JsonOptions::new(), unenforceable))
            .with_tags(self.over(StructuralTag::json_options(), unenforceable));
        Constraint::from_request_str_with(request, &options)
    }

    /// The constraint of tools.
    pub(super) fn of_tools(
        &self,
        tools: &Tools,
        unenforceable: Unenforceable,
    ) -> burn_dfa::Result<Constraint> {
        tools.to_constraint_with(&self.of_arguments(tools, unenforceable))
    }

    /// The options of the arguments of tools.
    pub(super) fn of_arguments(&self, tools: &Tools, unenforceable: Unenforceable) -> JsonOptions {
        self.over(tools.json_options(), unenforceable)
    }

    fn over(&self, options: JsonOptions, unenforceable: Unenforceable) -> JsonOptions {
        let whitespace = self.whitespace.unwrap_or(options.whitespace);
        options.with_whitespace(whitespace).with_unenforceable(unenforceable)
    }
}
