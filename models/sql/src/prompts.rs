//! The prompt of a row.

use std::sync::Arc;

use burn_dfa::TokenId;
use burn_dfa_decoder::Pretrained;

use crate::engine::Sizes;

/// The templates of the prompts: the user's message, with `{text}` for the text of the row, and
/// `{schema}`, `{labels}` or `{instruction}` for further arguments of a call.
///
/// ```
/// use burn_dfa_sql::PromptTemplates;
///
/// let templates =
///     PromptTemplates { classify: "Is this {labels}? {text}".into(), ..PromptTemplates::plain() };
/// assert_eq!(templates.extract, "{text}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplates {
    /// The template of `extract`.
    pub extract: String,
    /// The template of `classify`.
    pub classify: String,
    /// The template of `matches` with an instruction; without an instruction the prompt is the
    /// text.
    pub matches: String,
}

impl PromptTemplates {
    /// Only the text, for the embedded model; `matches` puts its instruction first.
    pub fn plain() -> Self {
        Self {
            extract: "{text}".into(),
            classify: "{text}".into(),
            matches: "{instruction}\n\n{text}".into(),
        }
    }

    /// Templates for a model that follows instructions.
    pub fn instructing() -> Self {
        Self {
            extract: "Write what the text says as JSON of this schema:\n{schema}\n\nText: {text}".into(),
            classify: "Which of these fits the text: {labels}?\n\nText: {text}".into(),
            matches: "{instruction}\n\nText: {text}".into(),
        }
    }
}

/// Replaces `{name}` by its value, in one pass: braces in a value stay unchanged.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(brace) = rest.find('{') {
        filled.push_str(&rest[..brace]);
        rest = &rest[brace..];
        let found = values
            .iter()
            .find(|(name, _)| rest[1..].strip_prefix(name).is_some_and(|rest| rest.starts_with('}')));
        let (written, taken) = found.map_or(("{", 1), |(name, value)| (value, name.len() + 2));
        filled.push_str(written);
        rest = &rest[taken..];
    }
    filled + rest
}

/// Encodes messages.
#[derive(Debug)]
pub(crate) struct Prompter {
    pretrained: Arc<Pretrained>,
    pub(crate) templates: PromptTemplates,
    /// Greatest number of bytes of a token.
    longest: usize,
}

impl Prompter {
    pub(crate) fn new(pretrained: Arc<Pretrained>, templates: PromptTemplates) -> Self {
        let longest = pretrained.vocabulary().iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(1);
        Self { pretrained, templates, longest: longest.max(1) }
    }

    /// The tokens of a message.
    ///
    /// # Errors
    /// A message, if the tokens fill the row.
    pub(crate) fn encode(&self, message: &str, sizes: &Sizes) -> Result<Vec<TokenId>, String> {
        let least = message.len() / self.longest;
        if least > sizes.slots {
            return Err(format!("the text takes more than {least} tokens, and a row has {}", sizes.slots));
        }
        let tokens = self.pretrained.prompt(message).map_err(|error| error.to_string())?;
        match tokens.len() {
            0 => Err("the text has no token".into()),
            length if length >= sizes.slots => {
                Err(format!("the text takes {length} tokens with its prompt, and a row has {}", sizes.slots))
            }
            _ => Ok(tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_filled_again() {
        let values = [("text", "{schema} }{"), ("schema", "{text}")];
        assert_eq!(fill("a {schema}: {text} {other} {", &values), "a {text}: {schema} }{ {other} {");
        assert_eq!(fill("", &values), "");
    }
}
