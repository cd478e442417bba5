//! Addresses and names of hosts, and of people on them.

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
    // `::` stands for at least one group; so many groups may come before it where so many follow.
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
/// Bounded: at most 63 characters, so that no label is too long either (RFC 1034 allows labels of 63 and names of 253,
/// for which an automaton needs tens of thousands of states); and no label has hyphens at its third and fourth
/// place, as the encoded ones of RFC 5891 have (`xn--…`): whether those are valid is not regular.
pub(super) fn hostname(meter: &Meter) -> Result<ByteDfa> {
    let label = "[0-9A-Za-z](?:[0-9A-Za-z-]*[0-9A-Za-z])?";
    let names = regex(&format!(r"{label}(?:\.{label})*"), meter)?;
    let encoded = regex(r"(?:[0-9A-Za-z.-]*\.)?[0-9A-Za-z-]{2}--[0-9A-Za-z.-]*", meter)?;
    let short = regex(".{1,63}", meter)?;
    names.product(&encoded, Op::Difference, meter)?.product(&short, Op::Intersection, meter)
}

/// `Mailbox` of RFC 5321, section 4.1.2: a local part of at most 64 bytes, dotted or quoted, and a host.
///
/// Bounded as [`hostname`] is; and of the addresses in brackets those of IPv4 and IPv6 only.
pub(super) fn email(meter: &Meter) -> Result<ByteDfa> {
    let atom = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+";
    let dotted = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    let dotted = dotted.product(&regex(".{1,64}", meter)?, Op::Intersection, meter)?;
    let quoted = regex(r#""(?:[ !#-\[\]-~]|\\[ -~])*""#, meter)?;
    let quoted = quoted.product(&regex(".{2,64}", meter)?, Op::Intersection, meter)?;
    let local = dotted.product(&quoted, Op::Union, meter)?;
    at(local, domain(meter)?, meter)
}

/// `Mailbox` as RFC 6531, section 3.3 extends it: characters beyond ASCII in the local part.
///
/// Bounded as [`email`] is, with a host in ASCII; and a local part that is not in ASCII has at most 16 characters, which
/// take at most 64 bytes.
pub(super) fn idn_email(meter: &Meter) -> Result<ByteDfa> {
    let atom = r"[0-9A-Za-z!#$%&'*+/=?^_`{|}~\x{80}-\x{10ffff}-]+";
    let dotted = regex(&format!(r"{atom}(?:\.{atom})*"), meter)?;
    let quoted = regex(r#""(?:[ !#-\[\]-~\x{80}-\x{10ffff}]|\\[ -~])*""#, meter)?;
    let short = regex("(?s:.{1,16})", meter)?;
    let local = dotted.product(&quoted, Op::Union, meter)?.product(&short, Op::Intersection, meter)?;
    at(local, domain(meter)?, meter)?.product(&email(meter)?, Op::Union, meter)
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
