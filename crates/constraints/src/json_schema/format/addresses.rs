//! IP addresses, alone, with the length of a prefix, and as networks.

/// `IPv4address` of RFC 3986, section 3.2.2: four numbers to 255 without leading zeros.
pub(super) const IPV4: &str =
    r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

const GROUP: &str = "[0-9A-Fa-f]{1,4}";

/// `IPv6address` of RFC 3986, section 3.2.2, which is the text of RFC 4291, section 2.2.
pub(super) fn ipv6() -> String {
    let last = format!("(?:{GROUP}:{GROUP}|{IPV4})");
    let mut forms = vec![format!("(?:{GROUP}:){{6}}{last}")];
    // `::` is at least one group, so the number of groups after it bounds the number before it.
    for after in 0..=5 {
        let before = match 5 - after {
            0 => String::new(),
            more => format!("(?:(?:{GROUP}:){{0,{}}}{GROUP})?", more - 1),
        };
        forms.push(format!("{before}::(?:{GROUP}:){{{after}}}{last}"));
    }
    forms.push(format!("(?:(?:{GROUP}:){{0,5}}{GROUP})?::{GROUP}"));
    forms.push(format!("(?:(?:{GROUP}:){{0,6}}{GROUP})?::"));
    format!("(?:{})", forms.join("|"))
}

/// An address of IPv4, with an optional prefix length.
pub(super) fn ipv4_interface() -> String {
    format!("{IPV4}(?:/{})?", at_least(0, 32))
}

/// An address of IPv6, with an optional prefix length.
pub(super) fn ipv6_interface() -> String {
    format!("{}(?:/{})?", ipv6(), at_least(0, 128))
}

/// An address of IPv4 and a prefix length with all later bits zero; or an address alone.
pub(super) fn ipv4_network() -> String {
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let mut forms = vec![format!("{IPV4}(?:/32)?"), format!(r"0\.0\.0\.0/{}", at_least(0, 32))];
    // The last non-zero byte, and the number of zeros at its end.
    for (at, zeros) in (0..4).flat_map(|at| (0..8).map(move |zeros| (at, zeros))) {
        let step = 1 << zeros;
        let last: Vec<String> = (step..256).step_by(step).map(|byte| byte.to_string()).collect();
        let (before, after) = (format!(r"{byte}\.").repeat(at), r"\.0".repeat(3 - at));
        forms.push(format!("{before}(?:{}){after}/{}", last.join("|"), at_least(8 * (at + 1) - zeros, 32)));
    }
    format!("(?:{})", forms.join("|"))
}

/// The same for IPv6. If the length is less than 128, the zeros at the end are written as `::`.
pub(super) fn ipv6_network() -> String {
    let mut forms = vec![format!("{}(?:/128)?", ipv6()), format!("::/{}", at_least(0, 128))];
    // The number of groups before the `::`, and the zeros at the end of the last, by whole digits
    // and by bits.
    for (groups, zeros) in (1..8).flat_map(|groups| (0..16).map(move |zeros| (groups, zeros))) {
        let digit = ["[0-9A-Fa-f]", "[02468ACEace]", "[048Cc]", "[08]"][zeros % 4];
        let last = format!("[0-9A-Fa-f]{{0,{}}}{digit}{}", 3 - zeros / 4, "0".repeat(zeros / 4));
        let before = format!("{GROUP}:").repeat(groups - 1);
        forms.push(format!("{before}{last}::/{}", at_least(16 * groups - zeros, 128)));
    }
    format!("(?:{})", forms.join("|"))
}

/// Possible addresses, interfaces and networks of some readers: with a zone or a mask too.
pub(super) const POSSIBLE_NETWORK: &str = r"[0-9A-Fa-f.:]+(?:%[^/]*)?(?:/[0-9A-Fa-f.:]+)?";

/// The numbers from `least` to `max`.
fn at_least(least: usize, max: usize) -> String {
    let numbers: Vec<String> = (least..=max).map(|number| number.to_string()).collect();
    format!("(?:{})", numbers.join("|"))
}
