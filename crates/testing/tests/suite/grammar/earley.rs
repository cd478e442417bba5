//! A recognizer of grammars by Earley's algorithm, independent of the library.
//!
//! A grammar is lowered to productions over ranges of bytes. An *item* is a production with a dot
//! after the symbols read so far, and its *origin*, the number of bytes before the production. The
//! set of items after each byte holds all items of derivations that begin with the bytes read so
//! far. Productions without texts are removed, so each item of a set belongs to a derivation of a
//! whole text.
//!
//! References: J. Earley, *An Efficient Context-Free Parsing Algorithm*, 1970; J. Aycock and R. N.
//! Horspool, *Practical Earley Parsing*, 2002, for nonterminals that derive the empty text.

use regex_syntax::utf8::Utf8Sequences;

use super::form::{Grammar, Node};

/// More bytes than any text.
const NONE: usize = usize::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symbol {
    /// A byte in this inclusive range.
    Byte(u8, u8),
    Nonterminal(usize),
    /// After the last symbol of a production.
    End,
}

/// A grammar in lowered form.
#[derive(Debug)]
pub struct Recognizer {
    /// The symbols of all productions in sequence. A dot is the index of the next symbol.
    symbols: Vec<Symbol>,
    /// By symbol, the left-hand side of its production.
    owners: Vec<usize>,
    /// By symbol, the minimum number of bytes from it to the end of its production.
    rests: Vec<usize>,
    /// By nonterminal, the starts of its productions. The nonterminals of rules come first.
    productions: Vec<Vec<usize>>,
    /// By nonterminal, its minimum number of bytes.
    shortest: Vec<usize>,
}

/// Productions before trimming.
#[derive(Default)]
struct Lowering {
    /// By nonterminal.
    productions: Vec<Vec<Vec<Symbol>>>,
}

impl Lowering {
    fn nonterminal(&mut self, productions: Vec<Vec<Symbol>>) -> Symbol {
        self.productions.push(productions);
        Symbol::Nonterminal(self.productions.len() - 1)
    }

    fn lower(&mut self, node: &Node) -> Vec<Symbol> {
        match node {
            Node::Text(text) => text.bytes().map(|byte| Symbol::Byte(byte, byte)).collect(),
            Node::Class(ranges) => {
                let sequences = ranges.iter().flat_map(|&(first, last)| Utf8Sequences::new(first, last));
                let productions = sequences.map(|sequence| {
                    sequence.as_slice().iter().map(|range| Symbol::Byte(range.start, range.end)).collect()
                });
                vec![self.nonterminal(productions.collect())]
            }
            Node::Rule(rule) => vec![Symbol::Nonterminal(*rule)],
            Node::Sequence(parts) => parts.iter().flat_map(|part| self.lower(part)).collect(),
            Node::Choice(parts) => {
                let productions = parts.iter().map(|part| self.lower(part)).collect();
                vec![self.nonterminal(productions)]
            }
            Node::Repeat(inner, min, max) => {
                let inner = self.lower(inner);
                let inner = self.nonterminal(vec![inner]);
                let mut symbols = vec![inner; *min];
                symbols.push(match max {
                    None => {
                        let many = Symbol::Nonterminal(self.productions.len());
                        self.nonterminal(vec![vec![], vec![many, inner]])
                    }
                    Some(max) => {
                        let none = self.nonterminal(vec![vec![]]);
                        (*min..*max).fold(none, |fewer, _| self.nonterminal(vec![vec![], vec![inner, fewer]]))
                    }
                });
                symbols
            }
        }
    }

    /// The minimum number of bytes of each nonterminal.
    fn shortest(&self) -> Vec<usize> {
        let mut shortest = vec![NONE; self.productions.len()];
        loop {
            let next: Vec<usize> = self
                .productions
                .iter()
                .map(|productions| {
                    productions.iter().map(|symbols| least(symbols, &shortest)).min().unwrap_or(NONE)
                })
                .collect();
            if next == shortest {
                return shortest;
            }
            shortest = next;
        }
    }
}

/// The minimum number of bytes of a sequence of symbols.
fn least(symbols: &[Symbol], shortest: &[usize]) -> usize {
    let of = |symbol: &Symbol| match symbol {
        Symbol::Byte(..) => 1,
        Symbol::Nonterminal(nonterminal) => shortest[*nonterminal],
        Symbol::End => 0,
    };
    symbols.iter().map(of).fold(0, usize::saturating_add)
}

impl Recognizer {
    pub fn new(grammar: &Grammar) -> Self {
        let mut lowering = Lowering { productions: vec![Vec::new(); grammar.rules.len()] };
        for (number, body) in grammar.rules.iter().enumerate() {
            let symbols = lowering.lower(body);
            lowering.productions[number].push(symbols);
        }
        let mut lowered = Self {
            symbols: Vec::new(),
            owners: Vec::new(),
            rests: Vec::new(),
            productions: Vec::new(),
            shortest: lowering.shortest(),
        };
        for (owner, productions) in lowering.productions.into_iter().enumerate() {
            let mut starts = Vec::new();
            for mut symbols in productions {
                if least(&symbols, &lowered.shortest) == NONE {
                    continue;
                }
                starts.push(lowered.symbols.len());
                symbols.push(Symbol::End);
                for at in 0..symbols.len() {
                    lowered.owners.push(owner);
                    lowered.rests.push(least(&symbols[at..], &lowered.shortest));
                }
                lowered.symbols.extend(symbols);
            }
            lowered.productions.push(starts);
        }
        lowered
    }

    /// Whether the grammar has no text.
    pub fn is_empty(&self) -> bool {
        self.shortest[0] == NONE
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    dot: usize,
    origin: usize,
}

impl Item {
    fn advanced(self) -> Self {
        Self { dot: self.dot + 1, ..self }
    }
}

/// The items after some bytes.
#[derive(Debug)]
struct Set {
    items: Vec<Item>,
    /// By nonterminal, the minimum number of bytes between the end of one that begins here and the
    /// end of the text; empty until it is asked for.
    after: Vec<usize>,
}

/// The item sets of the bytes read so far.
#[derive(Debug)]
pub struct Chart<'a> {
    grammar: &'a Recognizer,
    sets: Vec<Set>,
    /// The number of the first sets whose bytes after nonterminals are known.
    measured: usize,
}

/// The items of a set, as a bit for each dot and origin.
struct Known {
    bits: Vec<u64>,
    origins: usize,
}

impl Known {
    fn new(dots: usize, origins: usize) -> Self {
        Self { bits: vec![0; (dots * origins).div_ceil(64)], origins }
    }

    /// Adds an item; returns whether it is new.
    fn insert(&mut self, item: Item) -> bool {
        let at = item.dot * self.origins + item.origin;
        let (word, bit) = (&mut self.bits[at / 64], 1u64 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

impl<'a> Chart<'a> {
    /// The state before the first byte.
    pub fn new(grammar: &'a Recognizer) -> Self {
        let mut chart = Self { grammar, sets: Vec::new(), measured: 0 };
        let starts = grammar.productions[0].iter();
        chart.close(starts.map(|&dot| Item { dot, origin: 0 }).collect());
        chart
    }

    /// The number of bytes read.
    pub fn len(&self) -> usize {
        self.sets.len() - 1
    }

    /// Drops all bytes but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.sets.truncate(len + 1);
        self.measured = self.measured.min(self.sets.len());
    }

    /// Reads one more byte. If no text has this prefix, returns `false` and changes nothing.
    pub fn push(&mut self, byte: u8) -> bool {
        let reads = |item: &&Item| match self.grammar.symbols[item.dot] {
            Symbol::Byte(first, last) => (first..=last).contains(&byte),
            _ => false,
        };
        let items: Vec<Item> = self.last().items.iter().filter(reads).map(|item| item.advanced()).collect();
        let viable = !items.is_empty();
        if viable {
            self.close(items);
        }
        viable
    }

    /// Reads bytes while some text has this prefix; returns `false` if bytes are left.
    pub fn extend(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.push(byte))
    }

    /// Whether the bytes read are a text.
    pub fn accepts(&self) -> bool {
        let whole = |item: &Item| {
            item.origin == 0
                && self.grammar.symbols[item.dot] == Symbol::End
                && self.grammar.owners[item.dot] == 0
        };
        self.last().items.iter().any(whole)
    }

    /// The minimum number of bytes that complete a text; `None` if the grammar has no text.
    pub fn left(&mut self) -> Option<usize> {
        while self.measured < self.sets.len() {
            self.measure(self.measured);
            self.measured += 1;
        }
        self.last().items.iter().map(|&item| self.left_of(item)).min()
    }

    fn last(&self) -> &Set {
        self.sets.last().unwrap()
    }

    /// The minimum number of bytes from a dot to the end of the text.
    fn left_of(&self, item: Item) -> usize {
        let after = self.sets[item.origin].after[self.grammar.owners[item.dot]];
        self.grammar.rests[item.dot].saturating_add(after)
    }

    /// Adds a set with `items` and all items that follow from them without a byte.
    fn close(&mut self, mut items: Vec<Item>) {
        let here = self.sets.len();
        let mut known = Known::new(self.grammar.symbols.len(), here + 1);
        for &item in &items {
            known.insert(item);
        }
        let mut at = 0;
        while let Some(&item) = items.get(at) {
            let mut add = |item| {
                if known.insert(item) {
                    items.push(item);
                }
            };
            match self.grammar.symbols[item.dot] {
                Symbol::Byte(..) => {}
                Symbol::Nonterminal(next) => {
                    for &dot in &self.grammar.productions[next] {
                        add(Item { dot, origin: here });
                    }
                    if self.grammar.shortest[next] == 0 {
                        add(item.advanced());
                    }
                }
                // The item derived the empty text; the set already has the advanced dots.
                Symbol::End if item.origin == here => {}
                Symbol::End => {
                    let ended = Symbol::Nonterminal(self.grammar.owners[item.dot]);
                    for waiting in &self.sets[item.origin].items {
                        if self.grammar.symbols[waiting.dot] == ended {
                            add(waiting.advanced());
                        }
                    }
                }
            }
            at += 1;
        }
        self.sets.push(Set { items, after: Vec::new() });
    }

    /// Computes the minimum number of bytes after each nonterminal that begins in a set. The
    /// numbers of earlier sets are known.
    fn measure(&mut self, here: usize) {
        self.sets[here].after = vec![NONE; self.grammar.productions.len()];
        if here == 0 {
            self.sets[here].after[0] = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.sets[here].items.len() {
                let item = self.sets[here].items[at];
                if let Symbol::Nonterminal(next) = self.grammar.symbols[item.dot] {
                    let left = self.left_of(item.advanced());
                    let after = &mut self.sets[here].after[next];
                    changed |= left < *after;
                    *after = left.min(*after);
                }
            }
        }
    }
}
