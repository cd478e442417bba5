//! Tokens: `<think>`, `<[7]>`, `<[7,10-20]>`, `<[^7]>`, `<[*]>`.

use super::super::form::{Expression, Node, TokenName};
use super::cursor::Cursor;
use burn_dfa_common::Result;
use burn_dfa_vocabulary::TokenId;

/// Most token ids in a grammar, including ids in ranges.
const MAX_IDS: usize = 1 << 20;

impl Cursor<'_> {
    /// Reads a token, at its `<`.
    pub(super) fn token(&mut self) -> Result<Expression> {
        let at = self.at;
        let rest = self.rest();
        let end = rest[1..].find(|c: char| matches!(c, '<' | '>') || c.is_whitespace()).map(|end| end + 1);
        let Some(end) = end.filter(|&end| end > 1 && rest[end..].starts_with('>')) else {
            let reason =
                "expected a token such as `<think>` or `<[7,10-20]>`, without blanks and closed by `>`";
            return Err(self.error(reason));
        };
        let name = &rest[..=end];
        let (tokens, except) = match name.strip_prefix("<[").and_then(|name| name.strip_suffix("]>")) {
            None => (vec![TokenName::Text(name.to_owned())], false),
            Some("*") => (Vec::new(), true),
            Some("^*") => return Err(self.error("no token is left: `<[^*]>` excludes them all")),
            Some(ids) if ids.contains('*') => {
                return Err(self.error("`*` means every token, so nothing may stand beside it"));
            }
            Some(ids) => {
                let except = ids.starts_with('^');
                (self.ids(&ids[usize::from(except)..])?, except)
            }
        };
        self.at = at + name.len();
        Ok(Expression(Node::Token { tokens, except }))
    }

    fn ids(&mut self, list: &str) -> Result<Vec<TokenName>> {
        let mut ids = Vec::new();
        // llguidance skips empty items, as in `<[1,]>`.
        for range in list.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u32>().ok().filter(|_| digits)
            };
            let Some((first, last)) = number(first).zip(number(last)).filter(|(first, last)| first <= last)
            else {
                return Err(self.error(format!(
                    "`{}` is no range of tokens: it is an id, or two with `-` between them, the smaller first",
                    range.escape_debug()
                )));
            };
            self.spent.tokens = self.spent.tokens.saturating_add((last - first) as usize + 1);
            if self.spent.tokens > MAX_IDS {
                return Err(self
                    .error(format!("the grammar lists more than {MAX_IDS} tokens: exclude some with `^`")));
            }
            ids.extend((first..=last).map(|id| TokenName::Id(TokenId(id))));
        }
        if ids.is_empty() {
            return Err(self.error("expected the id of a token"));
        }
        Ok(ids)
    }
}
