//! Finds stop strings in streamed text.

use burn_dfa_tokens::matcher::TextMatcher;

/// Ends a streamed text at the first of some stop strings.
#[derive(Clone, Debug, Default)]
pub(super) struct StopStrings {
    strings: Vec<String>,
    matcher: TextMatcher,
    /// Whether the text includes the stop string.
    is_included: bool,
}

impl StopStrings {
    /// None of `strings` is empty. With `is_included` the text includes the stop string.
    pub(super) fn new(strings: &[String], is_included: bool) -> Self {
        Self { strings: strings.to_vec(), matcher: TextMatcher::new(strings), is_included }
    }

    /// Takes bytes of the text. Returns the bytes that cannot be part of a stop string, and whether
    /// a stop string was found. The bytes after a stop string are dropped, and no more may be
    /// pushed.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        if self.matcher.is_empty() {
            return (bytes.to_vec(), false);
        }
        let mut free = Vec::new();
        for &byte in bytes {
            if let Some(number) = self.matcher.push(byte, &mut free) {
                if self.is_included {
                    free.extend_from_slice(self.strings[number].as_bytes());
                }
                return (free, true);
            }
        }
        (free, false)
    }

    /// The held bytes, for a text that ends without a stop string.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut free = Vec::new();
        self.matcher.finish(&mut free);
        free
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    fn stops(strings: &[&str]) -> StopStrings {
        StopStrings::new(&strings.iter().map(|&string| string.to_owned()).collect::<Vec<_>>(), false)
    }

    #[test]
    fn text_that_may_begin_a_stop_string_is_held_back() {
        let mut stops = stops(&["\n\n", "END"]);
        assert_eq!(stops.push(b"one\n"), (b"one".to_vec(), false));
        assert_eq!(stops.push(b"two E"), (b"\ntwo ".to_vec(), false));
        assert_eq!(stops.push(b"N"), (vec![], false));
        assert_eq!(stops.push(b"EN"), (b"EN".to_vec(), false));
        assert_eq!(stops.push(b"Dx\n"), (vec![], true));
        assert_eq!(stops.finish(), b"");
    }

    #[test]
    fn of_strings_that_end_at_once_the_longest_counts() {
        assert_eq!(stops(&["b", "aab", "ab"]).push(b"xaab"), (b"x".to_vec(), true));
        assert_eq!(stops(&["abc", "b"]).push(b"xabc"), (b"xa".to_vec(), true));
    }

    #[test]
    fn a_string_that_is_included_is_the_end_of_the_text() {
        let mut stops = StopStrings::new(&["END".into(), "D".into()], true);
        assert_eq!(stops.push(b"one E"), (b"one ".to_vec(), false));
        assert_eq!(stops.push(b"NDx"), (b"END".to_vec(), true));
    }

    #[test]
    fn a_text_in_chunks_is_cut_where_a_search_finds_the_first_stop_string() {
        let mut rng = StdRng::seed_from_u64(1);
        let word = |rng: &mut StdRng, max: usize| -> String {
            (0..rng.random_range(1..=max)).map(|_| if rng.random() { 'a' } else { 'b' }).collect()
        };
        for _ in 0..2000 {
            let strings: Vec<String> = (0..rng.random_range(0..4)).map(|_| word(&mut rng, 6)).collect();
            let text = word(&mut rng, 40);
            // The first end of a stop string, and among strings with this end the first beginning.
            let found = (0..=text.len()).find_map(|end| {
                let ends = strings.iter().filter(|string| text[..end].ends_with(string.as_str()));
                ends.map(|string| end - string.len()).min()
            });
            let mut stops = StopStrings::new(&strings, false);
            let (mut given, mut rest) = (Vec::new(), text.as_bytes());
            let mut is_stopped = false;
            while !rest.is_empty() && !is_stopped {
                let (chunk, after) = rest.split_at(rng.random_range(1..=rest.len()));
                let (new, stopped) = stops.push(chunk);
                given.extend(new);
                assert!(
                    found.is_none_or(|at| given.len() <= at),
                    "{text} {strings:?}: part of a stop string"
                );
                (rest, is_stopped) = (after, stopped);
            }
            given.extend(stops.finish());
            assert_eq!(is_stopped, found.is_some(), "{text}, {strings:?}");
            assert_eq!(given, text.as_bytes()[..found.unwrap_or(text.len())], "{strings:?}");
        }
    }

    #[test]
    fn texts_and_strings_that_repeat_themselves_take_no_longer() {
        let mut stops = stops(&[&("a".repeat(100_000) + "b")]);
        let begin = std::time::Instant::now();
        let (given, stopped) = stops.push("a".repeat(1_000_000).as_bytes());
        assert_eq!((given.len(), stopped), (900_000, false));
        // Comparing each suffix with the string would take 10¹¹ steps.
        assert!(begin.elapsed().as_secs() < 60);
    }
}
