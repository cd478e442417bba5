//! The text tokens of a vocabulary as a trie, in the order of pruning walks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::child_lists::ChildLists;
use super::{CONTINUATION, TokenId};

/// A byte trie in pre-order: a node comes right before its subtree, children in order of their
/// bytes.
///
/// The root, the empty string, is not stored; nodes are numbered from 0. A walk keeps the result
/// for each depth on a stack and visits the nodes in order. At a dead node, it continues at the
/// node's [`end`](Self::end) instead of at the next node:
///
/// ```text
/// stack[0] = start
/// while node < len:
///     d = depth(node)
///     stack[d] = step(stack[d - 1], byte(node))
///     if stack[d] is dead: node = end(node)
///     else: handle tokens(node); node += 1
/// ```
///
/// Each live prefix is visited once, each dead prefix once, and no node below a dead node. A
/// subtree of bytes without effect, as inside a string of any characters, can also be skipped: see
/// [`below`](Self::below).
#[derive(Debug)]
pub struct Trie {
    /// `[nodes + 1]`: the last entry only marks the end of the tokens.
    nodes: Vec<Node>,
    /// The distinct sets of symbols below nodes; the first is empty.
    sets: Vec<Symbols>,
    /// Tokens in the order of their bytes, then of their ids.
    tokens: Vec<TokenId>,
    max_depth: usize,
    /// The children of nodes with many children; the first entries are the root's.
    child_lists: ChildLists,
    /// See [`find_begins`](Self::find_begins).
    begins: OnceLock<Box<[u32; 257]>>,
    /// See [`find_character_counts`](Self::find_character_counts).
    character_counts: OnceLock<Box<[CharacterCounts]>>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first node after the subtree.
    end: u32,
    /// The index of the node's first token.
    first: u32,
    /// The index of the set of symbols below the node.
    below: u32,
    /// The depth, and in the lowest eight bits the byte.
    step: u32,
    /// The number of the list of its children; 0 for none.
    child_list: u32,
}

/// The remaining children of a node, in the order of their bytes.
#[derive(Clone, Copy)]
pub struct Children {
    /// Indices of a list, or nodes.
    next: u32,
    end: u32,
    is_list: bool,
}

impl Children {
    /// Whether the children are stored contiguously, so that one is found without visiting earlier
    /// children.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.is_list
    }
}

/// The numbers of characters of some strings, each from 1 to 31: bit `n` is set if a string has `n`
/// characters. Bit 0 is set if other strings exist: not whole characters, or too many.
#[derive(Clone, Copy, Debug, Default)]
struct CharacterCounts(u32);

impl CharacterCounts {
    /// The numbers in increasing order; `None` if a string has another form.
    fn get(self) -> Option<impl Iterator<Item = u32>> {
        let Self(bits) = self;
        (bits & 1 == 0).then(|| (1..u32::BITS).filter(move |&count| bits >> count & 1 != 0))
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The counts after one more character.
    fn longer(self) -> Self {
        let Self(bits) = self;
        Self((bits & !1) << 1 | bits & 1 | bits >> (u32::BITS - 1))
    }
}

/// A set of symbols; a symbol is a printable ASCII character, or one of a few groups of other
/// bytes.
pub type Symbols = u128;

/// The symbol of `byte`, below 128.
pub fn symbol(byte: u8) -> u32 {
    match byte {
        b' '..=b'~' => u32::from(byte - b' '),
        0x80.. => 96 + u32::from(byte - 0x80) / 4,
        _ => 95,
    }
}

fn is_continuation(byte: u8) -> bool {
    (CONTINUATION.0..=CONTINUATION.1).contains(&byte)
}

impl Trie {
    /// The trie of sorted `words`.
    pub(super) fn of(words: &[(impl AsRef<[u8]>, TokenId)]) -> Self {
        Self::with_lists_from(ChildLists::MANY, words)
    }

    /// The same, with a list for each node that has at least `many` children.
    fn with_lists_from(many: usize, words: &[(impl AsRef<[u8]>, TokenId)]) -> Self {
        let mut trie = Self {
            nodes: Vec::new(),
            sets: vec![0],
            tokens: words.iter().map(|&(_, id)| id).collect(),
            max_depth: 0,
            child_lists: ChildLists::default(),
            begins: OnceLock::new(),
            character_counts: OnceLock::new(),
        };
        let mut numbers = HashMap::from_iter([(0, 0)]);
        // The nodes of the previous word, from the root's child on, each with the symbols found
        // below it.
        let mut path: Vec<(u32, Symbols)> = Vec::new();
        let mut previous: &[u8] = &[];
        for (at, (bytes, _)) in words.iter().enumerate() {
            let bytes = bytes.as_ref();
            let shared = previous.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            trie.close(&mut path, shared, &mut numbers);
            for &byte in &bytes[shared..] {
                path.push((trie.nodes.len() as u32, 0));
                trie.push(path.len(), byte, at);
            }
            trie.max_depth = trie.max_depth.max(bytes.len());
            previous = bytes;
        }
        trie.close(&mut path, 0, &mut numbers);
        trie.push(0, 0, trie.tokens.len());
        trie.nodes.shrink_to_fit();
        trie.sets.shrink_to_fit();
        trie.fan_out(many);
        trie
    }

    /// Stores the children of nodes with at least `many` children contiguously.
    fn fan_out(&mut self, many: usize) {
        let mut children = Vec::new();
        let children_of = |trie: &Self, nodes: Range<usize>, children: &mut Vec<(u8, u32)>| {
            children.clear();
            let mut node = nodes.start;
            while node < nodes.end {
                children.push((trie.byte(node), node as u32));
                node = trie.end(node) as usize;
            }
        };
        children_of(self, 0..self.len(), &mut children);
        self.child_lists.push(&children);
        for node in 0..self.len() {
            children_of(self, node + 1..self.end(node) as usize, &mut children);
            if children.len() >= many {
                self.nodes[node].child_list = self.child_lists.push(&children);
            }
        }
        self.child_lists.shrink_to_fit();
    }

    fn push(&mut self, depth: usize, byte: u8, first: usize) {
        let step = (depth as u32) << 8 | u32::from(byte);
        self.nodes.push(Node { end: 0, first: first as u32, below: 0, step, child_list: 0 });
    }

    /// Ends the subtrees of the nodes of `path` deeper than `depth`; `numbers` maps sets to their
    /// index.
    fn close(&mut self, path: &mut Vec<(u32, Symbols)>, depth: usize, numbers: &mut HashMap<Symbols, u32>) {
        while path.len() > depth
            && let Some((node, below)) = path.pop()
        {
            let end = self.nodes.len() as u32;
            let node = &mut self.nodes[node as usize];
            node.end = end;
            node.below = *numbers.entry(below).or_insert_with(|| {
                self.sets.push(below);
                self.sets.len() as u32 - 1
            });
            if let Some((_, around)) = path.last_mut() {
                *around |= below | 1 << symbol(node.step as u8);
            }
        }
    }

    /// Number of nodes.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks")]
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// The last byte of the string of `node`.
    pub fn byte(&self, node: usize) -> u8 {
        self.nodes[node].step as u8
    }

    /// The length of the string of `node`, at least 1.
    pub fn depth(&self, node: usize) -> usize {
        (self.nodes[node].step >> 8) as usize
    }

    /// The first node after the subtree of `node`.
    pub fn end(&self, node: usize) -> u32 {
        self.nodes[node].end
    }

    /// The tokens equal to the string of `node`, in order of their ids.
    pub fn tokens(&self, node: usize) -> &[TokenId] {
        &self.tokens[self.own(node)]
    }

    /// Whether `node` has no children.
    #[inline]
    pub fn is_leaf(&self, node: usize) -> bool {
        self.nodes[node].end as usize == node + 1
    }

    /// The symbols of all bytes below `node`, without its own byte.
    pub fn below(&self, node: usize) -> Symbols {
        self.sets[self.nodes[node].below as usize]
    }

    /// All tokens, in the order of their bytes, then of their ids.
    pub fn all_tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The range of the tokens of `node` in [`all_tokens`](Self::all_tokens).
    pub fn own(&self, node: usize) -> Range<usize> {
        self.nodes[node].first as usize..self.nodes[node + 1].first as usize
    }

    /// The range of the tokens of `node` and of all nodes below it in
    /// [`all_tokens`](Self::all_tokens); the tokens of the node itself come first.
    pub fn subtree(&self, node: usize) -> Range<usize> {
        let Node { first, end, .. } = self.nodes[node];
        first as usize..self.nodes[end as usize].first as usize
    }

    /// The children of the root, or of a node.
    #[inline]
    pub fn children(&self, node: Option<usize>) -> Children {
        let child_list = node.map_or(0, |node| self.nodes[node].child_list);
        match node {
            Some(node) if child_list == 0 => {
                Children { next: node as u32 + 1, end: self.end(node), is_list: false }
            }
            _ => {
                let Range { start, end } = self.child_lists.range(child_list);
                Children { next: start, end, is_list: true }
            }
        }
    }

    /// The next of `children` with a byte that `is_wanted`, and its byte.
    #[inline(always)]
    pub fn next_child(
        &self,
        children: &mut Children,
        mut is_wanted: impl FnMut(u8) -> bool,
    ) -> Option<(usize, u8)> {
        while children.next < children.end {
            let at = children.next;
            let byte = if children.is_list { self.child_lists.byte(at) } else { self.byte(at as usize) };
            children.next = if children.is_list { at + 1 } else { self.end(at as usize) };
            if is_wanted(byte) {
                return Some((if children.is_list { self.child_lists.node(at) } else { at } as usize, byte));
            }
        }
        None
    }

    /// The next of `children` with a byte in a range, and its byte. Skips children before the range
    /// and keeps children after it.
    #[inline]
    pub fn next_child_within(&self, children: &mut Children, (first, last): (u8, u8)) -> Option<(usize, u8)> {
        if children.is_list {
            children.next = self.child_lists.first_from(children.next..children.end, first);
        }
        while children.next < children.end {
            let at = children.next;
            let byte = if children.is_list { self.child_lists.byte(at) } else { self.byte(at as usize) };
            if byte > last {
                return None;
            }
            children.next = if children.is_list { at + 1 } else { self.end(at as usize) };
            if byte >= first {
                return Some((if children.is_list { self.child_lists.node(at) } else { at } as usize, byte));
            }
        }
        None
    }

    /// The children of the node of `prefix`; `None` if no token has the prefix.
    pub fn children_behind(&self, prefix: &[u8]) -> Option<Children> {
        prefix.iter().try_fold(self.children(None), |mut children, &byte| {
            let (node, _) = self.next_child_within(&mut children, (byte, byte))?;
            Some(self.children(Some(node)))
        })
    }

    /// The number of nodes of tokens with a first byte in a range.
    #[inline]
    pub fn count_between(&self, first: u8, last: u8) -> usize {
        let begins = self.begins.get_or_init(|| self.find_begins());
        (begins[usize::from(last) + 1] - begins[usize::from(first)]) as usize
    }

    /// For each byte, the first node with it or a greater first byte; then the number of nodes.
    fn find_begins(&self) -> Box<[u32; 257]> {
        let mut begins = Box::new([self.len() as u32; 257]);
        let (mut children, mut from) = (self.children(None), 0);
        while let Some((node, byte)) = self.next_child(&mut children, |_| true) {
            begins[from..=usize::from(byte)].fill(node as u32);
            from = usize::from(byte) + 1;
        }
        begins
    }

    /// The numbers of characters of the tokens of the subtree of `node`, without the characters
    /// before the byte of `node`; `None` if a token is not of whole characters, if a character
    /// continues with the byte, or if a number is too large. Computed once.
    pub fn character_counts(&self, node: usize) -> Option<impl Iterator<Item = u32>> {
        let counts = self.character_counts.get_or_init(|| self.find_character_counts());
        if is_continuation(self.byte(node)) { None } else { counts[node].get() }
    }

    /// For each node, the numbers of characters that its tokens have from the character of the
    /// node's byte on.
    fn find_character_counts(&self) -> Box<[CharacterCounts]> {
        let mut counts = vec![CharacterCounts::default(); self.len()];
        let mut string = Vec::new();
        for (node, counts) in counts.iter_mut().enumerate() {
            string.truncate(self.depth(node) - 1);
            string.push(self.byte(node));
            if !self.own(node).is_empty() {
                let is_whole = std::str::from_utf8(&string).is_ok();
                *counts = CharacterCounts(if is_whole { 1 << 1 } else { 1 });
            }
        }
        for node in (0..self.len()).rev() {
            let mut child = node + 1;
            while child < self.end(node) as usize {
                let continues = is_continuation(self.byte(child));
                let below = if continues { counts[child] } else { counts[child].longer() };
                counts[node] = counts[node].or(below);
                child = self.end(child) as usize;
            }
        }
        counts.into()
    }

    /// The length of the longest token.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use burn_dfa_common::random::Random;

    /// The strings and tokens visited by a walk that skips the subtrees of `dead` strings.
    fn walk(vocabulary: &Vocabulary, dead: &[&str]) -> Vec<(String, Vec<u32>)> {
        let trie = vocabulary.trie();
        let mut string = Vec::new();
        let mut met = Vec::new();
        let mut node = 0;
        while node < trie.len() {
            string.truncate(trie.depth(node) - 1);
            string.push(trie.byte(node));
            let text = String::from_utf8(string.clone()).unwrap();
            if dead.contains(&text.as_str()) {
                node = trie.end(node) as usize;
                continue;
            }
            met.push((text, trie.tokens(node).iter().map(|id| id.0).collect()));
            node += 1;
        }
        met
    }

    fn met(rows: &[(&str, &[u32])]) -> Vec<(String, Vec<u32>)> {
        rows.iter().map(|&(text, ids)| (text.to_owned(), ids.to_vec())).collect()
    }

    #[test]
    fn every_prefix_is_one_node_before_its_subtree() {
        let tokens = [Some("ba"), Some("a"), None, Some("abc"), Some("a"), Some(""), Some("b"), Some("abd")];
        let vocabulary = Vocabulary::from_bytes(tokens).unwrap().with_eos([TokenId(2)]).unwrap();
        let whole: &[(&str, &[u32])] =
            &[("a", &[1, 4]), ("ab", &[]), ("abc", &[3]), ("abd", &[7]), ("b", &[6]), ("ba", &[0])];
        assert_eq!(walk(&vocabulary, &[]), met(whole));
        assert_eq!(walk(&vocabulary, &["ab"]), met(&[whole[0], whole[4], whole[5]]));
        assert_eq!(walk(&vocabulary, &["abc", "b"]), met(&[whole[0], whole[1], whole[3]]));
        let trie = vocabulary.trie();
        assert_eq!(trie.max_depth(), 3);
        let ranges = [(0, 255), (0, b'a'), (b'a', b'a'), (b'b', b'b'), (b'b', 255), (b'c', b'z')];
        assert_eq!(ranges.map(|(first, last)| trie.count_between(first, last)), [6, 4, 4, 2, 2, 0]);
    }

    #[test]
    fn a_node_knows_what_is_below_it() {
        let vocabulary = Vocabulary::from_bytes(["a", "abé", "b", "abc"].map(Some)).unwrap();
        let trie = vocabulary.trie();
        let set = |bytes: &[u8]| bytes.iter().fold(0, |set, &byte| set | 1 << symbol(byte));
        assert_eq!(trie.below(0), set("bcé".as_bytes()));
        assert_eq!(trie.below(1), set("cé".as_bytes()));
        assert_eq!(trie.below(2), 0);
        let tokens = |node| trie.all_tokens()[trie.subtree(node)].iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(tokens(0), [0, 3, 1]);
        assert_eq!(tokens(1), [3, 1]);
        assert_eq!(tokens(trie.len() - 1), [2]);
        assert_eq!((0..=255).map(symbol).max(), Some(127));
    }

    #[test]
    fn a_node_knows_the_numbers_of_characters_below_it() {
        let long = "x".repeat(32);
        let words = ["a", "abé", "é", "éa", "中文", "b", &long].map(|word| word.as_bytes().to_vec());
        let vocabulary =
            Vocabulary::from_bytes(words.into_iter().chain([b"b\xE4".to_vec()]).map(Some)).unwrap();
        let trie = vocabulary.trie();
        let counts = |string: &[u8]| {
            let (last, prefix) = string.split_last().unwrap();
            let mut children = trie.children_behind(prefix).unwrap();
            let (node, _) = trie.next_child(&mut children, |byte| byte == *last).unwrap();
            trie.character_counts(node).map(|counts| counts.collect::<Vec<_>>())
        };
        assert_eq!(counts(b"a"), Some(vec![1, 3]));
        assert_eq!(counts(b"ab"), Some(vec![2]));
        assert_eq!(counts("é".as_bytes()), None);
        assert_eq!(counts(b"\xC3"), Some(vec![1, 2]));
        assert_eq!(counts(b"\xE4"), Some(vec![2]));
        assert_eq!(counts(b"b"), None, "part of a character");
        assert_eq!(counts(b"x"), None, "too many characters");
        assert_eq!(counts(b"xx"), Some(vec![31]));
    }

    #[test]
    fn children_are_met_in_order_whether_they_are_many_or_few() {
        // The root and `a` have many children, `b` has few, and the last ones none.
        let many = (b'a'..=b'k').flat_map(|byte| [vec![byte], vec![b'a', byte]]);
        let words: Vec<Vec<u8>> = many.chain([b"bx", b"by"].map(|word| word.to_vec())).collect();
        let vocabulary = Vocabulary::from_bytes(words.iter().map(Some)).unwrap();
        let trie = vocabulary.trie();
        for prefix in ["", "a", "b", "c", "ab", "bx", "bz", "z"].map(str::as_bytes) {
            let begins = |word: &&Vec<u8>| word.len() == prefix.len() + 1 && word.starts_with(prefix);
            let mut expected: Vec<(u8, Vec<u8>)> =
                words.iter().filter(begins).map(|word| (word[prefix.len()], word.clone())).collect();
            expected.sort();
            let mut met = Vec::new();
            let mut children = trie.children_behind(prefix);
            assert_eq!(children.is_none(), [&b"bz"[..], b"z"].contains(&prefix));
            while let Some((node, byte)) = children.as_mut().and_then(|all| trie.next_child(all, |_| true)) {
                met.push((byte, vocabulary.bytes(trie.tokens(node)[0]).unwrap().to_vec()));
            }
            assert_eq!(met, expected);
            let mut wanted = trie.children_behind(prefix);
            let found = wanted.as_mut().and_then(|all| trie.next_child(all, |byte| byte == b'y'));
            assert_eq!(found.is_some(), prefix == b"b");
        }
    }

    /// With lists of all children, of many children, and of the root's children only.
    #[test]
    fn children_are_the_same_with_and_without_lists() {
        let mut random = Random(7);
        for words in [1, 5, 40, 300] {
            let mut words: Vec<Vec<u8>> = (0..words)
                .map(|_| (0..1 + random.below(4)).map(|_| b'a' + random.below(14) as u8).collect())
                .collect();
            words.sort();
            let words: Vec<_> = words.into_iter().zip((0..).map(TokenId)).collect();
            let tries = [0, ChildLists::MANY, usize::MAX].map(|many| Trie::with_lists_from(many, &words));
            let root = std::iter::once(None);
            for node in root.chain((0..tries[0].len()).map(Some)) {
                let bounds = [random.below(16), random.below(16)].map(|byte| b'`' + byte as u8);
                let range = (bounds[0].min(bounds[1]), bounds[0].max(bounds[1]));
                let [all, many, few] = tries.each_ref().map(|trie| {
                    let (mut wanted, mut within) = (trie.children(node), trie.children(node));
                    let odd = std::iter::from_fn(|| trie.next_child(&mut wanted, |byte| byte % 2 == 1));
                    let odd: Vec<_> = odd.collect();
                    let inside = std::iter::from_fn(|| trie.next_child_within(&mut within, range));
                    let inside: Vec<_> = inside.collect();
                    let after = std::iter::from_fn(|| trie.next_child(&mut within, |_| true));
                    [odd, inside, after.collect()]
                });
                assert_eq!(all, many, "{node:?}, {range:?}");
                assert_eq!(all, few, "{node:?}, {range:?}");
            }
        }
    }

    #[test]
    fn no_text_is_no_node() {
        let vocabulary = Vocabulary::from_bytes([None::<&str>, Some("")]).unwrap();
        assert_eq!(vocabulary.trie().len(), 0);
        assert_eq!(walk(&vocabulary, &[]), []);
    }

    #[test]
    fn clones_of_a_vocabulary_share_the_trie_until_one_changes() {
        let vocabulary = Vocabulary::from_chars("ab".chars()).unwrap();
        let clone = vocabulary.clone();
        assert!(std::ptr::eq(vocabulary.trie(), clone.trie()));
        let ended = clone.with_eos([TokenId(0)]).unwrap();
        assert_eq!(walk(&ended, &[]), met(&[("b", &[1])]));
    }
}
