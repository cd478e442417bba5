//! IP addresses, host names and mail addresses.

use super::regex;
use crate::automaton::{ByteDfa, Expr, Op};
use crate::error::Result;
use crate::limits::Meter;

/// `IPv4address` of RFC 3986, section 3.2.2: four numbers to 255 without leading zeros.
pub(super) const IPV4: &str =
    r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

/// `IPv6address` of RFC 3986, section 3.2.2, which is the text of RFC 4291, section 2.2.
pub(super) fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{IPV4})");
    let mut forms = vec![format!("(?:{group}:){{6}}{last}")];
    // `::` stands for at least one group, so the number of groups after it bounds the number before it.
    for after in 0..=5 {
        let before = match 5 - after {
            0 => String::new(),
            more => format!("(?:(?:{group}:){{0,{}}}{group})?", more - 1),
        };
        forms.push(format!("{before}::(?:{group}:){{{after}}}{last}"));
    }
    forms.push(format!("(?:(?:{group}:){{0,5}}{group})?::{group}"));
    forms.push(format!("(?:(?:{group}:){{0,6}}{group})?::"));
    format!("(?:{})", forms.join("|"))
}

/// Names of RFC 1123, section 2.1: labels of letters, digits and inner hyphens.
///
/// Names of at most 63 characters are surely valid if no label has hyphens as its third and fourth characters. Names of
/// at most 63 characters have no label that is too long. RFC 1034 allows labels of 63 and names of 253 characters, for
/// which an automaton needs tens of thousands of states. Labels with hyphens in these places are the encoded ones of
/// RFC 5891 (`xn--…`), whose validity is not a regular language.
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

/// Every character that takes more than one byte, between brackets.
pub(super) const BEYOND_ASCII: &str = r"\x{80}-\x{10ffff}";

/// Names that RFC 5890 may allow in Unicode: a character beyond ASCII may be mapped to any other, or to none.
pub(super) fn possible_idn_hostname() -> String {
    format!(r"[0-9A-Za-z.\-{BEYOND_ASCII}]+")
}

/// `Mailbox` of RFC 5321, section 4.1.2: a local part of at most 64 bytes, dotted or quoted, and a host.
///
/// An address is surely valid if its host is surely valid, or is an address of IPv4 or IPv6 in brackets, and it has
/// neither an escaped space nor a space before a `<`. Some implementations take the text before a `<` for a name.
pub(super) fn email(meter: &Meter) -> Result<ByteDfa> {
    let atom = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+";
    let dotted = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    let dotted = dotted.product(&regex(".{1,64}", meter)?, Op::Intersection, meter)?;
    let quoted = unlike_a_name(regex(r#""(?:[ !#-\[\]-~]|\\[!-~])*""#, meter)?, meter)?;
    let quoted = quoted.product(&regex(".{2,64}", meter)?, Op::Intersection, meter)?;
    let local = dotted.product(&quoted, Op::Union, meter)?;
    at(local, domain(meter)?, meter)
}

/// `Mailbox` as RFC 6531, section 3.3 extends it: characters beyond ASCII in the local part.
///
/// An address is surely valid under the conditions of [`email`] if the host is in ASCII and the local part, where it is
/// not in ASCII, has at most 16 characters, which take at most 64 bytes.
pub(super) fn idn_email(meter: &Meter) -> Result<ByteDfa> {
    let atom = r"[0-9A-Za-z!#$%&'*+/=?^_`{|}~\x{80}-\x{10ffff}-]+";
    let dotted = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    let quoted = regex(r#""(?:[ !#-\[\]-~\x{80}-\x{10ffff}]|\\[!-~])*""#, meter)?;
    let quoted = unlike_a_name(quoted, meter)?;
    let short = regex("(?s:.{1,16})", meter)?;
    let local = dotted.product(&quoted, Op::Union, meter)?.product(&short, Op::Intersection, meter)?;
    at(local, domain(meter)?, meter)?.product(&email(meter)?, Op::Union, meter)
}

/// Without a space before a `<`.
fn unlike_a_name(local: ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    local.product(&regex("(?s:.* <.*)", meter)?, Op::Difference, meter)
}

/// An address with any local part and any host, in the characters of ASCII and `more`; or, with white space, quotes,
/// comments or angle brackets, any text around an `@`, as RFC 5322, section 3.4 has them.
pub(super) fn possible_email(more: &str) -> String {
    let local = format!(r#"[!-~{more}--\x22(),:;<>@\[\\\]]+"#);
    let host = format!(r"(?:[0-9A-Za-z.\-{more}]+|\[(?s:.)*\])");
    let free = r#"(?s:.+[\t-\r \x22(<].*@.+|.+@.*[\t-\r \x22(<].*)"#;
    format!(r#"(?:{local}@{host}|[\t-\r \x22(<](?s:.*@.+)|{free})"#)
}

/// What may stand after the `@`.
fn domain(meter: &Meter) -> Result<ByteDfa> {
    let literal = regex(&format!(r"\[(?:{IPV4}|IPv6:{})\]", ipv6()), meter)?;
    hostname(meter)?.product(&literal, Op::Union, meter)
}

fn at(local: ByteDfa, domain: ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    let at = Expr::Literals(vec![b"@".to_vec()]);
    Expr::Concat(vec![Expr::Dfa(local.into()), at, Expr::Dfa(domain.into())]).determinize(meter)
}
