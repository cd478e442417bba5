//! Host names and mail addresses.

use super::regex;
use burn_dfa_automata::{ByteDfa, Expr, Op};
use burn_dfa_common::{Result, limits::Meter};

/// Names of RFC 1123, section 2.1: labels of letters, digits and inner hyphens.
///
/// Names of at most 63 characters are surely valid if no label has hyphens as its third and fourth
/// characters. Such names have no label that is too long. RFC 1034 allows labels of 63 and names of
/// 253 characters, whose automaton would need tens of thousands of states. Labels with hyphens at
/// these positions are the encoded ones of RFC 5891 (`xn--…`), whose validity is not a regular
/// language.
pub(super) fn hostname(meter: &Meter) -> Result<ByteDfa> {
    let label = "[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?";
    let names = regex(&format!(r"{label}(?:\.{label})*"), meter)?;
    let encoded = regex(r"(?:[0-9A-Za-z.-]*\.)?[0-9A-Za-z-]{2}--[0-9A-Za-z.-]*", meter)?;
    let short = regex(".{1,63}", meter)?;
    names.product(&encoded, Op::Difference, meter)?.product(&short, Op::Intersection, meter)
}

/// Names of labels of any length, with or without the dot of the root at the end.
pub(super) const POSSIBLE_HOSTNAME: &str =
    r"[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?(?:\.[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?)*\.?";

/// Every character of more than one byte, between brackets.
pub(super) const BEYOND_ASCII: &str = r"\x{80}-\x{10ffff}";

/// Names that RFC 5890 may allow in Unicode: a character beyond ASCII may be mapped to any other,
/// or to none.
pub(super) fn possible_idn_hostname() -> String {
    format!(r"[0-9A-Za-z.\-{BEYOND_ASCII}]+")
}

/// `Mailbox` of RFC 5321, section 4.1.2: a dotted local part of at most 64 bytes, and a host.
///
/// An address is surely valid if its host surely is, and the host has a dot and only letters after
/// its last dot. Few readers accept local parts in quotes, addresses of IPv4 or IPv6 in brackets
/// and hosts of one label.
pub(super) fn email(meter: &Meter) -> Result<ByteDfa> {
    let atom = format!("[{ATOM}]+");
    let local = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    at(local.product(&regex(".{1,64}", meter)?, Op::Intersection, meter)?, domain(meter)?, meter)
}

/// The same with letters beyond ASCII in the local part, as in RFC 6531, section 3.3.
///
/// An address is surely valid under the conditions of [`email`]. A local part beyond ASCII must
/// also have at most 16 characters, which take at most 64 bytes, and only [`LETTERS`] beyond ASCII.
pub(super) fn idn_email(meter: &Meter) -> Result<ByteDfa> {
    let atom = format!("[{ATOM}{LETTERS}]+");
    let local = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    let local = local.product(&regex(".{1,16}", meter)?, Op::Intersection, meter)?;
    at(local, domain(meter)?, meter)?.product(&email(meter)?, Op::Union, meter)
}

/// An address of [`email`], or one in angle brackets after a name of at most eight words.
pub(super) fn name_email(meter: &Meter) -> Result<ByteDfa> {
    let word = format!("[{ATOM}{LETTERS}.]+");
    let name = regex(&format!("{word}(?: {word}){{0,7}}"), meter)?;
    let email = email(meter)?;
    let literal = |text: &str| Expr::Literals(vec![text.into()]);
    let parts = [Expr::Dfa(name.into()), literal(" <"), Expr::Dfa(email.clone().into()), literal(">")];
    Expr::Concat(parts.into()).determinize(meter)?.product(&email, Op::Union, meter)
}

/// `atext` of RFC 5322, section 3.2.3, between brackets.
const ATOM: &str = r"0-9A-Za-z!#$%&'*+/=?^_`{|}~\-";

/// Letters of Latin, Greek, Cyrillic, Japanese, Chinese and Korean that every version of Unicode
/// has and no normal form changes, between brackets.
const LETTERS: &str = r"\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{17f}\x{3b1}-\x{3c9}\x{400}-\x{45f}\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{4e00}-\x{9fa5}\x{ac00}-\x{d7a3}";

/// An address with any local part and any host, in the characters of ASCII and `more`; or any text
/// around an `@` with white space, quotes, comments or angle brackets, as in RFC 5322, section 3.4.
pub(super) fn possible_email(more: &str) -> String {
    let local = format!(r#"[!-~{more}--\x22(),:;<>@\[\\\]]+"#);
    let host = format!(r"(?:[0-9A-Za-z.\-{more}]+|\[(?s:.)*\])");
    let free = r#"(?s:.+[\t-\r \x22(<].*@.+|.+@.*[\t-\r \x22(<].*)"#;
    format!(r#"(?:{local}@{host}|[\t-\r \x22(<](?s:.*@.+)|{free})"#)
}

/// A host after the `@`.
fn domain(meter: &Meter) -> Result<ByteDfa> {
    let dotted = regex(r"(?:[0-9A-Za-z-]+\.)+[A-Za-z]+", meter)?;
    hostname(meter)?.product(&dotted, Op::Intersection, meter)
}

fn at(local: ByteDfa, domain: ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    let at = Expr::Literals(vec![b"@".to_vec()]);
    Expr::Concat(vec![Expr::Dfa(local.into()), at, Expr::Dfa(domain.into())]).determinize(meter)
}
