//! Stop strings, found in a text as it comes.

/// Finds the first of some stop strings in a text that comes in pieces, and holds back what may be the beginning of one.
///
/// Each string is followed by its own automaton of Knuth, Morris and Pratt, so that a byte takes the same time on average
/// however the text and the strings repeat themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct StopStrings {
    strings: Vec<Progress>,
    /// What may be the beginning of a stop string.
    held: Vec<u8>,
}

/// One stop string, and how much of it the text ends with.
#[derive(Clone, Debug)]
struct Progress {
    string: Vec<u8>,
    /// For each beginning of the string, by length less 1: the longest shorter beginning that it ends with.
    fallbacks: Vec<usize>,
    matched: usize,
}

impl Progress {
    /// `string` is not empty.
    fn new(string: &str) -> Self {
        let string = string.as_bytes().to_vec();
        let mut fallbacks = vec![0; string.len()];
        for at in 1..string.len() {
            fallbacks[at] = next(&string, &fallbacks, fallbacks[at - 1], string[at]);
        }
        Self { string, fallbacks, matched: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.matched = next(&self.string, &self.fallbacks, self.matched, byte);
    }

    fn is_complete(&self) -> bool {
        self.matched == self.string.len()
    }
}

/// How much of `string` a text ends with that ended with `matched` bytes of it, less than all, after one more byte.
fn next(string: &[u8], fallbacks: &[usize], mut matched: usize, byte: u8) -> usize {
    while matched > 0 && string[matched] != byte {
        matched = fallbacks[matched - 1];
    }
    matched + usize::from(string[matched] == byte)
}

impl StopStrings {
    /// None of `strings` is empty.
    pub(super) fn new(strings: &[String]) -> Self {
        Self { strings: strings.iter().map(|string| Progress::new(string)).collect(), held: Vec::new() }
    }

    /// Takes bytes of the text. Gives those that are no part of a stop string, and whether one has come: what comes after it
    /// is dropped, and no more may be pushed.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        if self.strings.is_empty() {
            return (bytes.to_vec(), false);
        }
        for &byte in bytes {
            self.held.push(byte);
            self.strings.iter_mut().for_each(|string| string.push(byte));
            let complete = self.strings.iter().filter(|string| string.is_complete());
            // Of those that end here, the one that began first.
            if let Some(length) = complete.map(|string| string.matched).max() {
                self.held.truncate(self.held.len() - length);
                return (self.finish(), true);
            }
        }
        let kept = self.strings.iter().map(|string| string.matched).max().unwrap_or(0);
        let free = self.held.len() - kept;
        (self.held.drain(..free).collect(), false)
    }

    /// What is held back, where the text ends without a stop string.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    fn stops(strings: &[&str]) -> StopStrings {
        StopStrings::new(&strings.iter().map(|&string| string.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_may_go_on_is_held_back() {
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
    fn a_text_in_pieces_is_cut_where_a_search_finds_the_first_stop_string() {
        let mut rng = StdRng::seed_from_u64(1);
        let word = |rng: &mut StdRng, most: usize| -> String {
            (0..rng.random_range(1..=most)).map(|_| if rng.random() { 'a' } else { 'b' }).collect()
        };
        for _ in 0..2000 {
            let strings: Vec<String> = (0..rng.random_range(0..4)).map(|_| word(&mut rng, 6)).collect();
            let text = word(&mut rng, 40);
            // The first end, and of those there the first beginning.
            let found = (0..=text.len()).find_map(|end| {
                let ends = strings.iter().filter(|string| text[..end].ends_with(string.as_str()));
                ends.map(|string| end - string.len()).min()
            });
            let (mut stops, mut given, mut rest) = (StopStrings::new(&strings), Vec::new(), text.as_bytes());
            let mut is_stopped = false;
            while !rest.is_empty() && !is_stopped {
                let (piece, after) = rest.split_at(rng.random_range(1..=rest.len()));
                let (new, stopped) = stops.push(piece);
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
        assert!(begin.elapsed().as_secs() < 5);
    }
}
