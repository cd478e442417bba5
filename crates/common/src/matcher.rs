//! Finds strings in text that arrives in chunks.

/// Finds the first of some strings in a streamed text, and holds back a suffix that may be the
/// beginning of one.
///
/// The first string is the one that ends first; of strings that end at the same byte, the longest
/// counts. Each string has its own Knuth-Morris-Pratt automaton, so a byte takes amortized constant
/// time even for repetitive texts and strings.
///
/// Example: with the strings `END` and `\n\n`, the text `one\ntwo EN` is free up to `two `, and
/// `EN` is held. After `D` the match is `END`.
#[derive(Clone, Debug, Default)]
pub struct TextMatcher {
    strings: Vec<Progress>,
    /// The suffix of the text that may be the beginning of a string.
    held: Vec<u8>,
}

/// One string, and the length of its longest prefix at the end of the text.
#[derive(Clone, Debug)]
struct Progress {
    string: Vec<u8>,
    /// For each prefix of the string, indexed by length - 1: the length of its longest proper
    /// border.
    fallbacks: Vec<usize>,
    matched: usize,
}

impl Progress {
    fn new(string: &[u8]) -> Self {
        let mut fallbacks = vec![0; string.len()];
        for at in 1..string.len() {
            fallbacks[at] = next(string, &fallbacks, fallbacks[at - 1], string[at]);
        }
        Self { string: string.to_vec(), fallbacks, matched: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.matched = next(&self.string, &self.fallbacks, self.matched, byte);
    }
}

/// The length of the longest prefix of `string` at the end of a text after one more byte. Before it
/// the length was `matched`, less than all of `string`.
fn next(string: &[u8], fallbacks: &[usize], mut matched: usize, byte: u8) -> usize {
    while matched > 0 && string[matched] != byte {
        matched = fallbacks[matched - 1];
    }
    matched + usize::from(string[matched] == byte)
}

impl TextMatcher {
    /// A matcher of `strings`; empty strings are never found.
    pub fn new<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Self {
        let strings = strings.into_iter().map(|string| Progress::new(string.as_ref())).collect();
        Self { strings, held: Vec::new() }
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// Reads a byte. Bytes that cannot be part of a string go to `free`. Returns the number of the
    /// string that is complete now, which is in neither; the search then starts again.
    pub fn push(&mut self, byte: u8, free: &mut Vec<u8>) -> Option<usize> {
        self.held.push(byte);
        let (mut longest, mut found) = (0, None);
        for (number, string) in
            self.strings.iter_mut().enumerate().filter(|(_, string)| !string.string.is_empty())
        {
            string.push(byte);
            if string.matched == string.string.len()
                && found.is_none_or(|(length, _)| length < string.matched)
            {
                found = Some((string.matched, number));
            }
            longest = longest.max(string.matched);
        }
        if let Some((length, number)) = found {
            self.held.truncate(self.held.len() - length);
            self.finish(free);
            return Some(number);
        }
        free.extend(self.held.drain(..self.held.len() - longest));
        None
    }

    /// Ends the text: the held bytes are free, and the search starts again.
    pub fn finish(&mut self, free: &mut Vec<u8>) {
        free.append(&mut self.held);
        self.strings.iter_mut().for_each(|string| string.matched = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn all(text: &str, strings: &[&str]) -> (String, Vec<usize>) {
        let (mut matcher, mut free) = (TextMatcher::new(strings), Vec::new());
        let found = text.bytes().filter_map(|byte| matcher.push(byte, &mut free)).collect();
        matcher.finish(&mut free);
        (String::from_utf8(free).unwrap(), found)
    }

    #[test]
    fn the_string_that_ends_first_counts_and_then_the_longest() {
        assert_eq!(all("a<<b>c", &["<b>"]), ("a<c".into(), vec![0]));
        assert_eq!(all("xabcx", &["bcx", "ab"]), ("xcx".into(), vec![1]));
        assert_eq!(all("[{y", &["{", "[{"]), ("y".into(), vec![1]));
        assert_eq!(all("aabaa", &["aac"]), ("aabaa".into(), vec![]));
        assert_eq!(all("abab", &["", "ab"]), (String::new(), vec![1, 1]));
    }

    #[test]
    fn random_texts_are_cut_where_a_search_finds_the_first_string() {
        let mut random = Random(1);
        let word = |random: &mut Random, max: usize| -> String {
            (0..=random.below(max)).map(|_| if random.below(2) == 0 { 'a' } else { 'b' }).collect()
        };
        for _ in 0..2000 {
            let strings: Vec<String> = (0..random.below(4)).map(|_| word(&mut random, 6)).collect();
            let text = word(&mut random, 40);
            let found = (0..=text.len()).find_map(|end| {
                let ends = strings.iter().filter(|string| text[..end].ends_with(string.as_str()));
                ends.map(|string| end - string.len()).min()
            });
            let (mut matcher, mut free) = (TextMatcher::new(&strings), Vec::new());
            let is_found = text.bytes().any(|byte| {
                let is_found = matcher.push(byte, &mut free).is_some();
                assert!(found.is_none_or(|at| free.len() <= at), "{text} {strings:?}");
                is_found
            });
            matcher.finish(&mut free);
            assert_eq!(is_found, found.is_some(), "{text}, {strings:?}");
            let expected = if is_found { &text[..found.unwrap()] } else { &text[..] };
            assert_eq!(free, expected.as_bytes(), "{text}, {strings:?}");
        }
    }
}
