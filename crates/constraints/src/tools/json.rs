//! Finds the end of a JSON value.

/// Finds the end of a JSON value byte by byte. The value is assumed to be valid.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonScan {
    depth: usize,
    is_begun: bool,
    in_string: bool,
    is_escaped: bool,
}

/// The end of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    No,
    /// With this byte.
    With,
    /// Before this byte.
    Before,
}

impl JsonScan {
    pub(super) fn push(&mut self, byte: u8) -> Ended {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    return self.closed();
                }
                _ => {}
            }
            return Ended::No;
        }
        match byte {
            b'"' | b'{' | b'[' if self.is_begun && self.depth == 0 => return Ended::Before,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return self.closed();
            }
            b' ' | b'\t' | b'\r' | b'\n' if !self.is_begun => return Ended::No,
            // Numbers and words have no end of their own.
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.' => {}
            _ if self.depth == 0 => return Ended::Before,
            _ => {}
        }
        self.is_begun = true;
        Ended::No
    }

    fn closed(&self) -> Ended {
        if self.depth == 0 { Ended::With } else { Ended::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a text read as a value.
    fn read(text: &str) -> &str {
        let mut scan = JsonScan::default();
        for (at, byte) in text.bytes().enumerate() {
            match scan.push(byte) {
                Ended::No => {}
                Ended::With => return &text[..=at],
                Ended::Before => return &text[..at],
            }
        }
        panic!("no end")
    }

    #[test]
    fn a_value_ends_where_it_is_complete() {
        for (value, rest) in [
            (r#"{"a": "}\"]\\", "b": [1, {}]}"#, "}\n"),
            ("[]", "]"),
            (" \n {}", ","),
            ("-1.5e+7", "}"),
            ("true", " "),
            (r#""é\\""#, "\""),
            ("{}", "{}"),
        ] {
            assert_eq!(read(&format!("{value}{rest}")), value);
        }
    }
}
