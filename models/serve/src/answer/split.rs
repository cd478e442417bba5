//! Splits reasoning from the text behind it.

/// Text up to a mark, and text behind it. Pieces may be cut anywhere.
#[derive(Debug)]
pub struct Split {
    begin: &'static str,
    end: &'static str,
    /// Text that may be a part of a mark.
    held: String,
    part: Part,
}

#[derive(Debug, PartialEq)]
enum Part {
    /// In front of the reasoning, where its first mark may stand.
    Begin,
    Reasoning,
    Content,
}

impl Split {
    /// Reasoning that may have a mark at its beginning, and has one at its end.
    pub fn new(begin: &'static str, end: &'static str) -> Self {
        Self { begin, end, held: String::new(), part: Part::Begin }
    }

    /// More text; gives more reasoning and more content.
    pub fn push(&mut self, text: &str) -> (String, String) {
        self.held.push_str(text);
        if self.part == Part::Begin {
            if self.begin.starts_with(self.held.as_str()) && self.held.len() < self.begin.len() {
                return Default::default();
            }
            if let Some(rest) = self.held.strip_prefix(self.begin) {
                self.held = rest.to_owned();
            }
            self.part = Part::Reasoning;
        }
        let mut reasoning = String::new();
        if self.part == Part::Reasoning {
            match self.held.find(self.end) {
                Some(at) => {
                    reasoning = self.held[..at].to_owned();
                    self.held.drain(..at + self.end.len());
                    self.part = Part::Content;
                }
                None => {
                    let kept = self.begun();
                    let at = self.held.len() - kept;
                    return (self.held.drain(..at).collect(), String::new());
                }
            }
        }
        (reasoning, std::mem::take(&mut self.held))
    }

    /// What was held back of an answer that has ended.
    pub fn finish(&mut self) -> (String, String) {
        let held = std::mem::take(&mut self.held);
        if self.part == Part::Content { (String::new(), held) } else { (held, String::new()) }
    }

    /// Bytes at the end of what is held that begin the mark.
    fn begun(&self) -> usize {
        let longest = self.held.len().min(self.end.len() - 1);
        (1..=longest).rev().find(|&len| self.held.ends_with(&self.end[..len])).unwrap_or(0)
    }
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
                let mut split = Split::new("<think>", "</think>\n\n");
                let mut got = (String::new(), String::new());
                let mut add = |(reasoning, content): (String, String)| {
                    got.0.push_str(&reasoning);
                    got.1.push_str(&content);
                };
                for piece in text.as_bytes().chunks(size) {
                    add(split.push(std::str::from_utf8(piece).expect("the cases are ASCII")));
                }
                add(split.finish());
                assert_eq!(got, (reasoning.to_owned(), content.to_owned()), "{text} in pieces of {size}");
            }
        }
    }
}
