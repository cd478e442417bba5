//! Random grammars, their texts, and texts with small errors.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::form::{Grammar, Node, all, class, one, rule, text};

/// The characters of most random grammars.
pub const ALPHABET: [char; 9] = ['a', 'b', '(', ')', '[', ']', ',', '1', '+'];

/// A grammar with every kind of recursion; its rules may be ambiguous, empty, or without texts.
pub fn grammar(rng: &mut StdRng, alphabet: &[char]) -> Grammar {
    let rules = rng.random_range(1..5);
    let writer = Writer { alphabet, rules };
    Grammar { rules: (0..rules).map(|this| writer.rule(rng, this)).collect() }
}

/// The parameters of a random grammar.
struct Writer<'a> {
    alphabet: &'a [char],
    rules: usize,
}

impl Writer<'_> {
    fn rule(&self, rng: &mut StdRng, this: usize) -> Node {
        let part = self.expression(rng, 1);
        let end = self.expression(rng, 2);
        let me = rule(this);
        match rng.random_range(0..9) {
            // Left recursion: direct, through the next rule, and after an optional part.
            0 => one([all([me, part]), end]),
            1 => one([all([rule((this + 1) % self.rules), part]), end]),
            2 => one([all([part.optional(), me, self.expression(rng, 1)]), end]),
            // Right recursion.
            3 => one([all([part, me]), end]),
            // Recursion in brackets.
            4 | 5 => {
                let (open, close) = self.brackets(rng);
                let inside = if rng.random() { me } else { me.repeat(0, None) };
                one([all([text(open), inside, text(close)]), end])
            }
            // Ambiguity.
            6 => one([all([me.clone(), me]), end]),
            7 => all([part.clone(), all([self.character(rng), part]).repeat(0, None)]),
            _ => self.expression(rng, 3),
        }
    }

    /// Brackets, or two characters instead of brackets.
    fn brackets(&self, rng: &mut StdRng) -> (char, char) {
        let pairs = [('(', ')'), ('[', ']')];
        let pairs: Vec<_> = pairs.into_iter().filter(|(open, _)| self.alphabet.contains(open)).collect();
        let other = (self.alphabet[0], self.alphabet[self.alphabet.len() - 1]);
        *pairs.choose(rng).unwrap_or(&other)
    }

    fn character(&self, rng: &mut StdRng) -> Node {
        text(*self.alphabet.choose(rng).unwrap())
    }

    /// An expression with at most `depth` levels.
    fn expression(&self, rng: &mut StdRng, depth: usize) -> Node {
        if depth == 0 || rng.random_ratio(1, 3) {
            return match rng.random_range(0..8) {
                0..=2 => self.character(rng),
                3 => {
                    let count = rng.random_range(2..4);
                    text((0..count).map(|_| *self.alphabet.choose(rng).unwrap()).collect::<String>())
                }
                4 => {
                    let count = rng.random_range(1..3);
                    let characters = self.alphabet.choose_multiple(rng, count);
                    class(&characters.map(|&character| (character, character)).collect::<Vec<_>>())
                }
                5 if rng.random_ratio(1, 4) => all([]),
                _ => rule(rng.random_range(0..self.rules)),
            };
        }
        let parts = |rng: &mut StdRng| -> Vec<Node> {
            (0..rng.random_range(2..4)).map(|_| self.expression(rng, depth - 1)).collect()
        };
        match rng.random_range(0..8) {
            0..=2 => all(parts(rng)),
            3..=5 => one(parts(rng)),
            _ => {
                let (min, max) = *[(0, None), (1, None), (0, Some(1)), (0, Some(2)), (2, Some(3)), (2, None)]
                    .choose(rng)
                    .unwrap();
                self.expression(rng, depth - 1).repeat(min, max)
            }
        }
    }
}

/// A grammar with left recursion only, or with right recursion only, also through other rules and
/// next to empty parts.
pub fn linear(rng: &mut StdRng) -> Grammar {
    let letters = ['a', 'b', 'c'];
    let rules = rng.random_range(1..5);
    let on_the_left = rng.random();
    let letter = |rng: &mut StdRng| text(*letters.choose(rng).unwrap());
    let branch = |rng: &mut StdRng| {
        let next = rule(rng.random_range(0..rules));
        match rng.random_range(0..10) {
            0 | 1 => letter(rng),
            2..=4 => next,
            5 => all([]),
            _ => {
                let mut parts = vec![letter(rng), next];
                match rng.random_range(0..4) {
                    // The recursion may follow an optional or empty part.
                    0 => parts[0] = parts[0].clone().optional(),
                    1 => parts.insert(1, letter(rng).repeat(0, None)),
                    2 => parts.insert(rng.random_range(0..3), rule(rules)),
                    _ => {}
                }
                if on_the_left {
                    parts.reverse();
                }
                all(parts)
            }
        }
    };
    let mut bodies: Vec<Node> = (0..rules)
        .map(|number| {
            let mut branches: Vec<Node> = (0..rng.random_range(1..4)).map(|_| branch(rng)).collect();
            if number == 0 {
                // Ensure that each rule has a text.
                branches.push(letter(rng));
            }
            one(branches)
        })
        .collect();
    bodies.push(all([]));
    Grammar { rules: bodies }
}

/// A grammar whose alternatives refer to rules at the beginning, at the end, or at both.
pub fn ends(rng: &mut StdRng) -> Grammar {
    let letters = ['a', 'b', 'c'];
    let rules = rng.random_range(2..4);
    let letter = |rng: &mut StdRng| text(*letters.choose(rng).unwrap());
    let branch = |rng: &mut StdRng| {
        let (first, last) = (rule(rng.random_range(0..rules)), rule(rng.random_range(0..rules)));
        match rng.random_range(0..6) {
            0 => first,
            1 => all([first, letter(rng)]),
            2 => all([letter(rng), last]),
            3 => all([first, last]),
            4 => all([first, letter(rng), last]),
            _ => letter(rng),
        }
    };
    let body =
        |_| one([vec![letter(rng)], (0..rng.random_range(1..3)).map(|_| branch(rng)).collect()].concat());
    Grammar { rules: (0..rules).map(body).collect() }
}

/// A grammar of a rule that recurs at both ends through two other rules: one at the beginning, one
/// at the end.
pub fn through_others(rng: &mut StdRng) -> Grammar {
    let letters = ['a', 'b', 'c'];
    let letter = |rng: &mut StdRng| text(*letters.choose(rng).unwrap());
    let (first, last, this) = (rule(0), rule(1), rule(2));
    let stands = |rng: &mut StdRng, is_first: bool| {
        let branches = (0..rng.random_range(1..4)).map(|_| {
            let mut parts = match rng.random_range(0..3) {
                0 => vec![this.clone()],
                1 => vec![letter(rng)],
                _ => vec![this.clone(), letter(rng)],
            };
            if !is_first {
                parts.reverse();
            }
            all(parts)
        });
        one(branches.collect::<Vec<_>>())
    };
    let branch = |rng: &mut StdRng| {
        let first = [&first, &this].choose(rng).map(|&node| node.clone()).unwrap();
        let last = [&last, &this].choose(rng).map(|&node| node.clone()).unwrap();
        match rng.random_range(0..5) {
            0 => all([first, last]),
            1 => all([first, letter(rng), last]),
            2 => all([first, letter(rng)]),
            3 => all([letter(rng), last]),
            _ => all([one([first, letter(rng)]), letter(rng).optional(), last]),
        }
    };
    let branches: Vec<Node> = (0..rng.random_range(1..4)).map(|_| branch(rng)).collect();
    let body = one([vec![letter(rng)], branches].concat());
    Grammar { rules: vec![stands(rng, true), stands(rng, false), body] }
}

/// A small grammar of aliases and empty parts.
pub fn cyclic(rng: &mut StdRng) -> Grammar {
    let letters = ['a', 'b', 'c'];
    let rules = rng.random_range(1..4);
    let leaf = |rng: &mut StdRng| match rng.random_range(0..20) {
        0..9 => text(*letters.choose(rng).unwrap()),
        9..12 => all([]),
        _ => rule(rng.random_range(0..rules)),
    };
    let part = |rng: &mut StdRng| match rng.random_range(0..6) {
        0 => leaf(rng).optional(),
        1 => one([leaf(rng), leaf(rng)]).repeat(0, None),
        2 => all([leaf(rng), leaf(rng)]),
        _ => leaf(rng),
    };
    let body = |_| {
        let branches: Vec<Node> = (0..rng.random_range(1..4)).map(|_| part(rng)).collect();
        if rng.random_ratio(1, 4) { all(branches) } else { one(branches) }
    };
    Grammar { rules: (0..rules).map(body).collect() }
}

/// A grammar whose alternatives mostly begin with different characters, as in common languages: a
/// stack suffices to read a text from left to right.
pub fn nested(rng: &mut StdRng) -> Grammar {
    let rules = rng.random_range(1..4);
    // A `+` stands before a part or between two parts.
    let signs = rng.random_ratio(1, 3);
    let body = |this| {
        let parts = nested_parts(rng, rules, signs);
        if signs {
            return parts;
        }
        match rng.random_range(0..5) {
            // Sums, by left recursion, by right recursion and as lists.
            0 => one([all([rule(this), text("+"), parts.clone()]), parts]),
            1 => all([parts, all([text("+"), rule(this)]).optional()]),
            2 => all([parts.clone(), all([text("+"), parts]).repeat(0, None)]),
            _ => parts,
        }
    };
    Grammar { rules: (0..rules).map(body).collect() }
}

fn nested_parts(rng: &mut StdRng, rules: usize, signs: bool) -> Node {
    let any = |rng: &mut StdRng| rule(rng.random_range(0..rules));
    let list = |part: Node| all([part.clone(), all([text(","), part]).repeat(0, None)]);
    let inside = |rng: &mut StdRng| match rng.random_range(0..6) {
        0 => any(rng),
        1 => any(rng).optional(),
        2 => any(rng).repeat(0, None),
        3 => list(any(rng)),
        4 => list(any(rng)).optional(),
        _ => all([any(rng), text(","), any(rng)]),
    };
    let round = all([text("("), inside(rng), text(")")]);
    let square = all([text("["), inside(rng), text("]")]);
    let letters = class(&[('a', 'b')]).repeat(1, None);
    let mut parts = vec![round, square, letters, text("1b"), text("a")];
    if signs {
        parts.push(all([text("+"), any(rng)]));
    }
    parts.shuffle(rng);
    parts.truncate(rng.random_range(1..4));
    // Ensure that each rule has a text.
    parts.push(text("1"));
    one(parts)
}

/// The characters of [`blocks`].
pub const BLOCK_ALPHABET: [char; 8] = ['a', 'b', 'e', '1', '=', ';', ' ', ','];

/// A grammar of statements in blocks with words as delimiters. A name may begin with a delimiter or
/// be equal to one, so only later characters show the end of a block.
pub fn blocks(rng: &mut StdRng) -> Grammar {
    let (statements, statement) = (rule(1), rule(2));
    let letters = class(&[('a', 'b'), ('e', 'e')]);
    let name = if rng.random() { letters.repeat(1, None) } else { letters.repeat(1, Some(3)) };
    let space = || text(" ").repeat(0, None);
    let gap = if rng.random() { text(" ") } else { text(" ").repeat(1, None) };
    let close = text(*["e", "ee", "eb"].choose(rng).unwrap());
    let mut parts =
        vec![all([name.clone(), space(), text("="), space(), class(&[('1', '1')]).repeat(1, None)])];
    let block =
        all([text(*["b", "ab"].choose(rng).unwrap()), gap, statements.clone(), space(), close.clone()]);
    parts.push(block);
    if rng.random() {
        // A second kind of block, in two parts.
        let middle = all([space(), text(","), space(), statements]).optional();
        parts.push(all([text("1"), space(), statement.clone(), middle, space(), close]));
    }
    parts.shuffle(rng);
    let separator = if rng.random() { all([space(), text(";"), space()]) } else { text(" ") };
    let list = match rng.random_range(0..3) {
        0 => all([statement.clone(), all([separator, statement]).repeat(0, None)]),
        1 => all([statement, separator]).repeat(0, None),
        _ => all([statement, separator]).repeat(1, Some(3)),
    };
    Grammar { rules: vec![rule(1), list, one(parts)] }
}

/// Draws texts of a grammar.
pub struct Sampler<'a> {
    grammar: &'a Grammar,
    /// For each rule, the minimum nesting depth of its texts; `None` for a rule without texts.
    heights: Vec<Option<usize>>,
}

impl<'a> Sampler<'a> {
    pub fn new(grammar: &'a Grammar) -> Self {
        let mut sampler = Self { grammar, heights: vec![None; grammar.rules.len()] };
        loop {
            let heights = grammar.rules.iter().map(|body| sampler.height(body)).collect();
            if heights == sampler.heights {
                return sampler;
            }
            sampler.heights = heights;
        }
    }

    fn height(&self, node: &Node) -> Option<usize> {
        match node {
            Node::Text(_) | Node::Class(_) => Some(0),
            Node::Rule(rule) => self.heights[*rule].map(|height| height + 1),
            Node::Sequence(parts) => parts
                .iter()
                .map(|part| self.height(part))
                .try_fold(0, |deepest, part| Some(deepest.max(part?))),
            Node::Choice(parts) => parts.iter().filter_map(|part| self.height(part)).min(),
            Node::Repeat(_, 0, _) => Some(0),
            Node::Repeat(inner, ..) => self.height(inner),
        }
    }

    /// A text that uses about `rules` rules at most; `None` if there are no texts.
    pub fn draw(&self, rng: &mut StdRng, mut rules: usize) -> Option<Vec<u8>> {
        self.heights[0]?;
        let mut text = Vec::new();
        self.write(rng, &self.grammar.rules[0], &mut rules, &mut text);
        Some(text)
    }

    fn write(&self, rng: &mut StdRng, node: &Node, rules: &mut usize, text: &mut Vec<u8>) {
        match node {
            Node::Text(literal) => text.extend(literal.bytes()),
            Node::Class(ranges) => {
                let &(first, last) = ranges.choose(rng).unwrap();
                let character = rng.random_range(first..=last);
                text.extend(character.encode_utf8(&mut [0; 4]).bytes());
            }
            Node::Rule(rule) => {
                *rules = rules.saturating_sub(1);
                self.write(rng, &self.grammar.rules[*rule], rules, text);
            }
            Node::Sequence(parts) => parts.iter().for_each(|part| self.write(rng, part, rules, text)),
            Node::Choice(parts) => {
                let least = self.height(node);
                let fits = |part: &&Node| {
                    let height = self.height(part);
                    if *rules == 0 { height == least } else { height.is_some() }
                };
                let parts: Vec<&Node> = parts.iter().filter(fits).collect();
                let part = parts.choose(rng).unwrap();
                self.write(rng, part, rules, text);
            }
            Node::Repeat(inner, min, max) => {
                let mut times = 0;
                let more = |rng: &mut StdRng, rules: usize| {
                    rules > 0 && self.height(inner).is_some() && rng.random_ratio(2, 3)
                };
                while times < *min || max.is_none_or(|max| times < max) && more(rng, *rules) {
                    self.write(rng, inner, rules, text);
                    times += 1;
                }
            }
        }
    }
}

/// `text` with one to three small changes by characters of `alphabet`.
pub fn changed(rng: &mut StdRng, text: &[u8], alphabet: &[char]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..rng.random_range(1..4) {
        let byte = *alphabet.choose(rng).unwrap() as u8;
        let at = rng.random_range(0..=text.len());
        match rng.random_range(0..5) {
            0 if at < text.len() => text[at] = byte,
            1 if at < text.len() => drop(text.remove(at)),
            2 if at + 1 < text.len() => text.swap(at, at + 1),
            3 => text.truncate(at),
            _ => text.insert(at, byte),
        }
    }
    text
}

/// A random text over `alphabet`.
pub fn any(rng: &mut StdRng, alphabet: &[char]) -> Vec<u8> {
    (0..rng.random_range(0..12)).map(|_| *alphabet.choose(rng).unwrap() as u8).collect()
}
