//! Splits reasoning from the text after it.

use burn_dfa::tokens::matcher::TextMatcher;

/// Splits text up to a mark from text after it. Chunks may be cut anywhere.
#[derive(Debug)]
pub struct ReasoningSplitter {
    begin: String,
    end: TextMatcher,
    /// Text that may be the first mark.
    held: String,
    state: SplitState,
}

#[derive(Debug, PartialEq)]
enum SplitState {
    /// Before the reasoning, at its possible first mark.
    Begin,
    Reasoning,
    Content,
}

impl ReasoningSplitter {
    /// Splits after reasoning with an optional mark at its beginning and a mark at its end.
    pub fn new(begin: &str, end: &str) -> Self {
        let (begin, end) = (begin.to_owned(), TextMatcher::new([end]));
        Self { begin, end, held: String::new(), state: SplitState::Begin }
    }

    /// Adds text; returns further reasoning and further content.
    pub fn push(&mut self, text: &str) -> (String, String) {
        self.held.push_str(text);
        if self.state == SplitState::Begin {
            match begins_with(&self.held, &self.begin) {
                None => return Default::default(),
                Some(true) => self.held = self.held.split_off(self.begin.len()),
                Some(false) => {}
            }
            self.state = SplitState::Reasoning;
        }
        let text = std::mem::take(&mut self.held);
        if self.state == SplitState::Content {
            return (String::new(), text);
        }
        let mut reasoning = Vec::new();
        let found = text.bytes().position(|byte| self.end.push(byte, &mut reasoning).is_some());
        let content = match found {
            Some(at) => {
                self.state = SplitState::Content;
                text[at + 1..].to_owned()
            }
            None => String::new(),
        };
        (into_text(reasoning), content)
    }

    /// The text that was held back, at the end of an answer.
    pub fn finish(&mut self) -> (String, String) {
        let mut reasoning = Vec::new();
        self.end.finish(&mut reasoning);
        (into_text(reasoning) + &std::mem::take(&mut self.held), String::new())
    }
}

/// Whether a streamed text begins with a mark; `None` if only more of the text decides it.
pub(super) fn begins_with(text: &str, mark: &str) -> Option<bool> {
    match text.starts_with(mark) {
        false if mark.starts_with(text) => None,
        begins => Some(begins),
    }
}

/// Marks are whole characters, so text between them is.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cuts_give_the_same() {
        let cases = [
            ("<think>a < b</think>\n\n{\"a\":\"</think>\"}", "a < b", "{\"a\":\"</think>\"}"),
            ("a </th</think>\n\nb", "a </th", "b"),
            ("<thin", "<thin", ""),
            ("a</think>", "a</think>", ""),
        ];
        for (text, reasoning, content) in cases {
            for size in 1..=text.len() {
                let mut splitter = ReasoningSplitter::new("<think>", "</think>\n\n");
                let mut got = (String::new(), String::new());
                let mut add = |(reasoning, content): (String, String)| {
                    got.0.push_str(&reasoning);
                    got.1.push_str(&content);
                };
                for chunk in text.as_bytes().chunks(size) {
                    add(splitter.push(std::str::from_utf8(chunk).expect("the cases are ASCII")));
                }
                add(splitter.finish());
                assert_eq!(got, (reasoning.to_owned(), content.to_owned()), "{text} in chunks of {size}");
            }
        }
    }
}
