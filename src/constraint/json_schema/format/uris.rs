//! URIs of RFC 3986, IRIs of RFC 3987 and templates of RFC 6570.

use super::names::{IPV4, ipv6};

/// Characters of IRIs beyond ASCII: `ucschar`.
const UCSCHAR: &str = r"\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}\x{10000}-\x{1fffd}\x{20000}-\x{2fffd}\x{30000}-\x{3fffd}\x{40000}-\x{4fffd}\x{50000}-\x{5fffd}\x{60000}-\x{6fffd}\x{70000}-\x{7fffd}\x{80000}-\x{8fffd}\x{90000}-\x{9fffd}\x{a0000}-\x{afffd}\x{b0000}-\x{bfffd}\x{c0000}-\x{cfffd}\x{d0000}-\x{dfffd}\x{e1000}-\x{efffd}";

/// Those of queries besides: `iprivate`.
const IPRIVATE: &str = r"\x{e000}-\x{f8ff}\x{f0000}-\x{ffffd}\x{100000}-\x{10fffd}";

/// `unreserved` and `sub-delims`, between brackets.
const PLAIN: &str = r"0-9A-Za-z._~!$&'()*+,;=\-";

const ENCODED: &str = "%[0-9A-Fa-f]{2}";

/// The characters that are allowed: those of URIs or those of IRIs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Uri,
    Iri,
}

impl Kind {
    /// One of the characters that stand for themselves, of `more`, or an encoded byte.
    fn one_of(self, more: &str) -> String {
        let wide = if self == Self::Iri { UCSCHAR } else { "" };
        format!("(?:[{PLAIN}{wide}{more}]|{ENCODED})")
    }

    /// `URI`, or `IRI`: with a scheme.
    pub(super) fn absolute(self) -> String {
        let first = format!("{}+", self.one_of(":@"));
        format!("[A-Za-z][0-9A-Za-z+.-]*:{}{}", self.hierarchy(&first), self.tail())
    }

    /// `URI-reference`, or `IRI-reference`: with a scheme or relative, and then without a colon in the first segment.
    pub(super) fn reference(self) -> String {
        let first = format!("{}+", self.one_of("@"));
        format!("(?:{}|{}{})", self.absolute(), self.hierarchy(&first), self.tail())
    }

    /// An authority and a path, or a path, whose first segment is like `first` where it has no slash before it.
    fn hierarchy(self, first: &str) -> String {
        let pchar = self.one_of(":@");
        let segments = format!("(?:/{pchar}*)*");
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

/// `URI-Template` of RFC 6570, section 2, with its erratum 6937 (a literal may be an apostrophe).
pub(super) fn template() -> String {
    let literal = format!(r"[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{ENCODED}");
    let character = format!("(?:[0-9A-Za-z_]|{ENCODED})");
    let variable = format!(r"{character}(?:\.?{character})*(?::[1-9][0-9]{{0,3}}|\*)?");
    format!(r"(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}
