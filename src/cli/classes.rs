//! Sets of bytes and of characters in readable form: `[a-z]`, `[^"\\]`, `'-'`, `\n`,
//! `any character`.

use std::fmt::Write;

/// Maximum number of runs of a class of characters.
const MAX: usize = 12;

/// Inclusive runs of numbers.
type Runs = Vec<(u32, u32)>;

/// The bytes for which `holds`; `None` if there are none.
pub fn of_bytes(holds: impl Fn(u8) -> bool) -> Option<String> {
    let (inside, outside) = runs(0..=255, |byte| holds(byte as u8));
    match count(&inside) {
        0 => None,
        256 => Some("any byte".to_owned()),
        1..=128 => Some(class("", &inside, byte)),
        _ => Some(class("^", &outside, byte)),
    }
}

/// The characters for which `holds`; `None` if there are none.
pub fn of_chars(mut holds: impl FnMut(char) -> bool) -> Option<String> {
    let chars = ('\0'..=char::MAX).map(u32::from);
    let (inside, outside) = runs(chars, |code| char::from_u32(code).is_some_and(&mut holds));
    match (count(&inside), count(&outside)) {
        (0, _) => None,
        (_, 0) => Some("any character".to_owned()),
        (some, others) if some <= others => Some(shortened("", inside)),
        _ => Some(shortened("^", outside)),
    }
}

/// The runs of `numbers` in and out of a set.
fn runs(numbers: impl Iterator<Item = u32>, mut holds: impl FnMut(u32) -> bool) -> (Runs, Runs) {
    let (mut inside, mut outside) = (Runs::new(), Runs::new());
    let mut before = None;
    for number in numbers {
        let is_inside = holds(number);
        let runs = if is_inside { &mut inside } else { &mut outside };
        match runs.last_mut() {
            Some(last) if before == Some(is_inside) => last.1 = number,
            _ => runs.push((number, number)),
        }
        before = Some(is_inside);
    }
    (inside, outside)
}

fn count(runs: &Runs) -> u32 {
    runs.iter().map(|(first, last)| last - first + 1).sum()
}

/// A class of characters, limited to its first runs.
fn shortened(negation: &str, mut runs: Runs) -> String {
    let all = count(&runs);
    let more = runs.split_off(runs.len().min(MAX));
    let class = class(negation, &runs, char);
    match count(&more) {
        0 => class,
        _ if negation.is_empty() => format!("{class} and more, {all} characters"),
        _ => format!("{class}, and {} less", count(&more)),
    }
}

fn class(negation: &str, runs: &Runs, write: fn(&mut String, u32)) -> String {
    let mut text = String::new();
    if let ("", [(first, last)]) = (negation, &runs[..])
        && first == last
    {
        match u8::try_from(*first) {
            Ok(plain) if plain.is_ascii_alphanumeric() => text.push(plain.into()),
            // Quotes make a dash or a dot visible.
            Ok(graphic @ b' '..=b'~') => text.extend(['\'', graphic.into(), '\'']),
            _ => write(&mut text, *first),
        }
        return text;
    }
    text.push('[');
    text.push_str(negation);
    for &(first, last) in runs {
        write(&mut text, first);
        if last > first + 1 {
            text.push('-');
        }
        if last > first {
            write(&mut text, last);
        }
    }
    text.push(']');
    text
}

/// A byte within brackets.
fn byte(text: &mut String, byte: u32) {
    if byte < 0x80 {
        return char(text, byte);
    }
    let _never = write!(text, "\\x{byte:02X}");
}

/// A character within brackets.
fn char(text: &mut String, code: u32) {
    let _never = match char::from_u32(code) {
        Some(special @ ('\\' | '[' | ']' | '^' | '-')) => write!(text, "\\{special}"),
        Some('\n') => write!(text, "\\n"),
        Some('\r') => write!(text, "\\r"),
        Some('\t') => write!(text, "\\t"),
        Some(' ') => write!(text, "␣"),
        Some(ascii @ '!'..='~') => write!(text, "{ascii}"),
        Some(letter) if letter.is_alphanumeric() => write!(text, "{letter}"),
        _ if code < 0x80 => write!(text, "\\x{code:02X}"),
        _ => write!(text, "\\u{{{code:X}}}"),
    };
}
