//! URIs of RFC 3986, IRIs of RFC 3987 and templates of RFC 6570.

use super::addresses::{IPV4, ipv6};
use super::regex;
use burn_dfa_automata::{ByteDfa, Expr, Op};
use burn_dfa_common::{Result, limits::Meter};

/// Characters of IRIs beyond ASCII: `ucschar`.
const UCSCHAR: &str = r"\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}\x{10000}-\x{1fffd}\x{20000}-\x{2fffd}\x{30000}-\x{3fffd}\x{40000}-\x{4fffd}\x{50000}-\x{5fffd}\x{60000}-\x{6fffd}\x{70000}-\x{7fffd}\x{80000}-\x{8fffd}\x{90000}-\x{9fffd}\x{a0000}-\x{afffd}\x{b0000}-\x{bfffd}\x{c0000}-\x{cfffd}\x{d0000}-\x{dfffd}\x{e1000}-\x{efffd}";

/// Additional characters of queries: `iprivate`.
const IPRIVATE: &str = r"\x{e000}-\x{f8ff}\x{f0000}-\x{ffffd}\x{100000}-\x{10fffd}";

/// `unreserved` and `sub-delims`, between brackets.
const PLAIN: &str = r"0-9A-Za-z._~!$&'()*+,;=\-";

const ENCODED: &str = "%[0-9A-Fa-f]{2}";

/// A port of at most 16 bits, or an empty one.
const PORT: &str =
    "(?::(?:[0-9]{0,4}|[0-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?";

/// Schemes whose URIs always have a host.
const OF_HOSTS: &str = "(?:[Hh][Tt][Tt][Pp][Ss]?|[Ww][Ss]{1,2}|[Ff][Tt][Pp])";

const FILE: &str = "[Ff][Ii][Ll][Ee]";

/// The allowed characters: of URIs or of IRIs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Uri,
    Iri,
}

impl Kind {
    /// One unreserved character, one of `more`, or an encoded byte.
    fn one_of(self, more: &str) -> String {
        let wide = if self == Self::Iri { UCSCHAR } else { "" };
        format!("(?:[{PLAIN}{wide}{more}]|{ENCODED})")
    }

    /// A `URI` or `IRI` that readers of URLs accept too.
    ///
    /// It has text after its scheme, and a host with a name or a valid address, or none. With the
    /// schemes of the web it always has a host, and so it has with a port or a user.
    pub(super) fn url(self, meter: &Meter) -> Result<ByteDfa> {
        let first = format!("{}+", self.one_of(":@"));
        let any = regex(&format!("[A-Za-z][0-9A-Za-z+.-]*:{}{}", self.sure(&first), self.tail()), meter)?;
        let with_host = regex(&format!("(?s:{OF_HOSTS}:.*|{FILE}://.*)"), meter)?;
        let others = any.product(&with_host, Op::Difference, meter)?;
        let text = |text: &str| regex(text, meter).map(|dfa| Expr::Dfa(dfa.into()));
        let host = Expr::Dfa(self.host(meter)?.into());
        let user = self.one_of(":");
        let rest = format!("{}{}", self.segments(), self.tail());
        let of_web = Expr::Concat(vec![
            text(&format!("{OF_HOSTS}://(?:{user}*@)?"))?,
            host.clone(),
            text(&format!("{PORT}{rest}"))?,
        ]);
        let of_file = Expr::Concat(vec![
            text(&format!("{FILE}://"))?,
            Expr::Repeat { expr: host.into(), min: 0, max: Some(1) },
            text(&rest)?,
        ]);
        Expr::Union(vec![Expr::Dfa(others.into()), of_web, of_file]).determinize(meter)
    }

    /// A [`url`](Self::url) or a relative reference.
    pub(super) fn url_reference(self, meter: &Meter) -> Result<ByteDfa> {
        let first = format!("{}+", self.one_of("@"));
        let relative = regex(&format!("(?:{})?{}", self.sure(&first), self.tail()), meter)?;
        self.url(meter)?.product(&relative, Op::Union, meter)
    }

    /// URIs with several hosts in the authority. Each host has an optional user and an optional
    /// port.
    pub(super) fn hosts(meter: &Meter) -> Result<ByteDfa> {
        let kind = Self::Uri;
        let text = |text: &str| regex(text, meter).map(|dfa| Expr::Dfa(dfa.into()));
        let scheme = regex(r"[A-Za-z][0-9A-Za-z+.-]*://", meter)?;
        let scheme = scheme.product(&regex(&format!("{FILE}://"), meter)?, Op::Difference, meter)?;
        let host = kind.host(meter)?.product(&regex("[^,]*", meter)?, Op::Intersection, meter)?;
        let user = format!("(?:[0-9A-Za-z._~!$&'()*+;=:-]|{ENCODED})*@");
        let host = Expr::Concat(vec![text(&format!("(?:{user})?"))?, Expr::Dfa(host.into()), text(PORT)?]);
        let more = Expr::Concat(vec![text(",")?, host.clone()]);
        let more = Expr::Repeat { expr: more.into(), min: 0, max: None };
        let rest = text(&format!("{}{}", kind.segments(), kind.tail()))?;
        Expr::Concat(vec![Expr::Dfa(scheme.into()), host, more, rest]).determinize(meter)
    }

    /// A host of the web: an address, or labels without encoded ones; the last label is no number.
    fn host(self, meter: &Meter) -> Result<ByteDfa> {
        let wide = if self == Self::Iri { UCSCHAR } else { "" };
        let label = format!(r"[0-9A-Za-z_~!$&'()*+,;=\-{wide}]+");
        let names = regex(&format!(r"{label}(?:\.{label})*\.?"), meter)?;
        let misread = regex(r"(?:.*\.)?(?:[Xx][Nn]--.*|(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\.?)", meter)?;
        let address = regex(&format!(r"(?:{IPV4}|\[{}\])", ipv6()), meter)?;
        names.product(&misread, Op::Difference, meter)?.product(&address, Op::Union, meter)
    }

    /// The hierarchy of a [`url`](Self::url) of any scheme; it is not empty.
    fn sure(self, first: &str) -> String {
        let pchar = self.one_of(":@");
        let segments = self.segments();
        let authority = format!(r"(?:{}*@)?(?:\[{}\]|{}+){PORT}", self.one_of(":"), ipv6(), self.one_of(""));
        format!("(?://(?:{authority})?{segments}|/(?:{pchar}+{segments})?|{first}{segments})")
    }

    /// A path that is empty or begins with a slash.
    fn segments(self) -> String {
        format!("(?:/{}*)*", self.one_of(":@"))
    }

    /// `URI`, or `IRI`: with a scheme.
    pub(super) fn absolute(self) -> String {
        let first = format!("{}+", self.one_of(":@"));
        format!("[A-Za-z][0-9A-Za-z+.-]*:{}{}", self.hierarchy(&first), self.tail())
    }

    /// `URI-reference`, or `IRI-reference`: with a scheme or relative, and then without a colon in
    /// the first segment.
    pub(super) fn reference(self) -> String {
        let first = format!("{}+", self.one_of("@"));
        format!("(?:{}|{}{})", self.absolute(), self.hierarchy(&first), self.tail())
    }

    /// An authority and a path, or a path; the first segment of a path without a slash is `first`.
    fn hierarchy(self, first: &str) -> String {
        let pchar = self.one_of(":@");
        let segments = self.segments();
        let authority = self.authority();
        format!("(?://{authority}{segments}|/(?:{pchar}+{segments})?|{first}{segments}|)")
    }

    fn authority(self) -> String {
        let user = self.one_of(":");
        let name = self.one_of("");
        let address = format!(r"\[(?:{}|[vV][0-9A-Fa-f]+\.[{PLAIN}:]+)\]", ipv6());
        format!("(?:{user}*@)?(?:{address}|{IPV4}|{name}*)(?::[0-9]*)?")
    }

    /// The query and the fragment.
    fn tail(self) -> String {
        let private = if self == Self::Iri { IPRIVATE } else { "" };
        let query = self.one_of(&format!(":@/?{private}"));
        format!(r"(?:\?{query}*)?(?:#{}*)?", self.one_of(":@/?"))
    }
}

/// URLs of `http` and `https` with a host of several names, without a user: a part of [`Kind::url`]
/// with few states, because counted characters need a copy of each state for every number.
pub(super) fn counted(meter: &Meter) -> Result<ByteDfa> {
    const LABEL: &str = "[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*";
    let (segments, tail) = (Kind::Uri.segments(), Kind::Uri.tail());
    regex(&format!(r"https?://(?:{LABEL}\.)+[A-Za-z]+(?::[1-9][0-9]{{0,3}})?{segments}{tail}"), meter)
}

/// `URI-Template` of RFC 6570, section 2, with variables of letters and digits, lengths below
/// 1,000, and without reserved operators.
pub(super) fn template() -> String {
    template_of("!#$&()*+,", "[+#./;?&]", "[0-9A-Za-z_]+", 2)
}

/// A `URI-Template` with its erratum 6937 (a literal may be an apostrophe).
pub(super) fn possible_template() -> String {
    let character = format!("(?:[0-9A-Za-z_]|{ENCODED})");
    template_of("!#$&'()*+,", "[+#./;?&=,!@|]", &format!(r"{character}(?:\.?{character})*"), 3)
}

fn template_of(marks: &str, operator: &str, name: &str, digits: usize) -> String {
    let literal = format!(r"[{marks}\-./0-9:;=?@A-Z\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{ENCODED}");
    let variable = format!(r"{name}(?::[1-9][0-9]{{0,{digits}}}|\*)?");
    format!(r"(?:{literal}|\{{{operator}?{variable}(?:,{variable})*\}})*")
}
