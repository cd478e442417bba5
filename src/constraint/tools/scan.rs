//! Finds marks in text that comes in pieces.

/// The end of a text, as far as it may be how a mark begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    held: Vec<u8>,
}

impl Scan {
    /// Reads a byte. Text that belongs to no mark goes to `text`; the number of the mark that is complete is returned, and of
    /// several the longest counts.
    pub(super) fn push<M: AsRef<str>>(&mut self, byte: u8, marks: &[M], text: &mut Vec<u8>) -> Option<usize> {
        let marks = || marks.iter().map(|mark| mark.as_ref().as_bytes());
        self.held.push(byte);
        let found = marks().enumerate().filter(|(_, mark)| self.held.ends_with(mark));
        if let Some((number, mark)) = found.max_by_key(|(_, mark)| mark.len()) {
            self.held.truncate(self.held.len() - mark.len());
            text.append(&mut self.held);
            return Some(number);
        }
        let begins = |held: &[u8]| marks().any(|mark| mark.starts_with(held));
        let free = (0..self.held.len()).find(|&at| begins(&self.held[at..])).unwrap_or(self.held.len());
        text.extend(self.held.drain(..free));
        None
    }

    /// Ends the text: what is held is no mark.
    pub(super) fn finish(&mut self, text: &mut Vec<u8>) {
        text.append(&mut self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, marks: &[&str]) -> (String, Vec<usize>) {
        let (mut scan, mut out) = (Scan::default(), Vec::new());
        let found = text.bytes().filter_map(|byte| scan.push(byte, marks, &mut out)).collect();
        scan.finish(&mut out);
        (String::from_utf8(out).unwrap(), found)
    }

    #[test]
    fn the_mark_that_is_complete_first_counts_and_then_the_longest() {
        assert_eq!(scan("a<<b>c", &["<b>"]), ("a<c".into(), vec![0]));
        assert_eq!(scan("xabcx", &["bcx", "ab"]), ("xcx".into(), vec![1]));
        assert_eq!(scan("[{y", &["{", "[{"]), ("y".into(), vec![1]));
        assert_eq!(scan("aabaa", &["aac"]), ("aabaa".into(), vec![]));
    }
}
