//! The tokens that may follow in a row, on the CPU.

use std::sync::Arc;

use crate::table::{Left, PlainRun, Stacks, StateId, TokenReading, TokenTable, Top};
use crate::tensor::{HostRow, Legal, place};
use crate::vocabulary::{ClassTokens, TokenBits, TokenId, Trie};

/// What took more work than this to find, counted in tokens and nodes of the trie, is kept.
const WORTH_KEEPING: usize = 512;

/// The tokens that may follow in a row.
pub(super) fn legal(at: &HostRow<'_>) -> Arc<Legal> {
    // To the budget of no token only the end of the sequence is left, as to that of one.
    let left = at.position.remaining.max(1) - 1;
    let place = place(&at.position);
    at.kept.find(&place, left).unwrap_or_else(|| {
        let (mut found, mut left) = (Found::default(), Left::new(left));
        found.look_up(at, &mut left);
        let legal = Arc::new(found.legal(at));
        if found.work > WORTH_KEEPING {
            at.kept.keep(place, left.alike(), Arc::clone(&legal));
        }
        legal
    })
}

/// The tokens that may follow in a row: all of some classes but for a few, plain ones, and some more.
///
/// Of a walked table plain tokens are taken by their lengths where nothing else decides; the rest is walked. In free text all text
/// is taken, without the tokens that have to be walked.
#[derive(Default)]
struct Found {
    /// Whether each class is taken.
    classes: Vec<bool>,
    /// Plain tokens, which are of none of these classes.
    plain: Option<PlainRun>,
    /// Tokens of the classes that are legal only if they are in [`text`](Self::text).
    except: Vec<u32>,
    /// The legal tokens of walked text.
    text: Vec<u32>,
    /// What it took to find them.
    work: usize,
}

impl Found {
    fn look_up(&mut self, at: &HostRow<'_>, left: &mut Left) {
        let parts = at.table.parts();
        let state = at.position.state;
        let row = at.table.row(state);
        let mut stack = parts.calls.as_ref().map(|calls| Stacks::of(calls, &at.position));
        // Of what leaves the stack as it is.
        let can_end = |stack: &Option<(Stacks<'_>, Top)>, next: u32, left: &mut Left| match stack {
            None => left.reach(parts.tokens_to_end[next as usize]),
            Some((stacks, top)) => left.reach(stacks.to_end(StateId(next), *top)),
        };
        let TokenReading::Bytes { vocabulary, special, .. } = &parts.reading else {
            self.classes.extend(row.iter().map(|&next| can_end(&stack, next, left)));
            self.work += self.classes.len();
            return;
        };
        let reserved = &row[..TokenTable::RESERVED_COLUMNS];
        self.classes.extend(reserved.iter().map(|&next| can_end(&stack, next, left)));
        let free = parts.free_text(state).filter(|free| can_end(&stack, free.0, left));
        self.classes.push(free.is_some() || state == StateId::UNCONSTRAINED);
        self.classes.extend(special.of(row).iter().map(|&next| can_end(&stack, next, left)));
        if let Some(free) = free {
            self.walk_free(at, left, free);
        } else if state.0 >= StateId::RESERVED {
            self.plain = parts.plain_run(state, stack.as_mut().map(|(stacks, top)| (stacks, *top)), left);
            let mut walk = |(trie, begins): (&Trie, fn(u8) -> bool)| {
                let nodes = trie.by_first_byte().filter(|&(byte, _)| begins(byte));
                self.work += parts.each_text(&at.position, left, trie, nodes, add_to(&mut self.text));
            };
            match self.plain {
                Some(run) => vocabulary.less_plain(run.kind, run.control).for_each(walk),
                None => walk((vocabulary.trie(), |_| true)),
            }
        }
    }

    /// Walks the tokens of text that need not lead to the state `free` of free text.
    fn walk_free(&mut self, at: &HostRow<'_>, left: &mut Left, free: StateId) {
        let parts = at.table.parts();
        let TokenReading::Bytes { vocabulary, special, free: text, .. } = &parts.reading else { return };
        let beyond = at.beyond_free_text.get_or_init(|| vocabulary.trie_beyond(text.characters()));
        let parts_here = |byte| parts.parts_from(at.position.state, free, byte);
        for (trie, walks_all) in [(&**beyond, false), (vocabulary.trie(), true)] {
            let nodes = trie.by_first_byte().filter(|&(byte, _)| parts_here(byte) == walks_all);
            let nodes: Vec<_> = nodes.collect();
            let tokens = nodes.iter().flat_map(|(_, nodes)| trie.tokens_within(nodes));
            let tokens = tokens.filter(|&&id| special.column(id).is_none());
            self.except.extend(tokens.map(|id| id.0));
            self.work += parts.each_text(&at.position, left, trie, nodes, add_to(&mut self.text));
        }
    }

    /// The same in the form in which a row is masked.
    fn legal(&mut self, at: &HostRow<'_>) -> Legal {
        let all = at.table.vocabulary_len();
        let few = Legal::longest_list(all);
        let of_classes: usize = self.of_classes(at.class_tokens, true).map(<[u32]>::len).sum();
        let count = of_classes - self.except.len() + self.text.len();
        if let Some(plain) = self.plain {
            return self.with_plain(plain, count, at);
        }
        self.work += count.min(all - count);
        if self.except.is_empty() && count <= few {
            let tokens = self.of_classes(at.class_tokens, true).flatten().chain(&self.text);
            return Legal::Few(tokens.copied().collect());
        }
        if self.except.is_empty() && self.text.is_empty() && all - count <= few {
            return Legal::Most(self.of_classes(at.class_tokens, false).flatten().copied().collect());
        }
        self.work += self.except.len() + self.text.len();
        let mut bits;
        if 2 * of_classes <= all {
            bits = TokenBits::none(all);
            self.of_classes(at.class_tokens, true).flatten().for_each(|&token| bits.set(token));
        } else {
            bits = TokenBits::all(all);
            self.of_classes(at.class_tokens, false).flatten().for_each(|&token| bits.clear(token));
        }
        self.except.iter().for_each(|&token| bits.clear(token));
        self.text.iter().for_each(|&token| bits.set(token));
        Legal::of(bits, count)
    }

    /// The same where `count` tokens may follow beside plain ones.
    fn with_plain(&mut self, plain: PlainRun, count: usize, at: &HostRow<'_>) -> Legal {
        let TokenReading::Bytes { vocabulary, special, .. } = &at.table.parts().reading else {
            unreachable!("plain tokens are walked")
        };
        let (bits, plain) = vocabulary.plain_bits(plain.kind, plain.characters);
        let (mut bits, mut count) = (bits.clone(), count + plain);
        for &(token, _) in special.tokens() {
            count -= usize::from(bits.has(token.0));
            bits.clear(token.0);
        }
        let others = self.of_classes(at.class_tokens, true).flatten().chain(&self.text);
        others.for_each(|&token| bits.set(token));
        self.work += self.text.len();
        Legal::of(bits, count)
    }

    /// The tokens of the classes that are taken, or of the others.
    fn of_classes<'a>(
        &'a self,
        tokens: &'a ClassTokens,
        taken: bool,
    ) -> impl Iterator<Item = &'a [u32]> + 'a {
        let classes = self.classes.iter().enumerate().filter(move |&(_, &legal)| legal == taken);
        classes.map(|(class, _)| tokens.of(class))
    }
}

fn add_to(text: &mut Vec<u32>) -> impl FnMut(&[TokenId], StateId) {
    |tokens, _| text.extend(tokens.iter().map(|id| id.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Syntax;
    use crate::table::RowPosition;
    use crate::tensor::{Store, TensorTable};
    use crate::{Constraint, Limits, TensorOptions, Vocabulary};
    use burn::tensor::Device;

    fn tokens(legal: &Legal, all: usize) -> Vec<u32> {
        match legal {
            Legal::Few(tokens) => tokens.clone(),
            Legal::Most(tokens) => (0..all as u32).filter(|token| !tokens.contains(token)).collect(),
            Legal::Bits(bits, count) => {
                assert_eq!(bits.ones().count(), *count);
                bits.ones().collect()
            }
        }
    }

    /// Budgets may tell tokens apart, and do not where a place is known already for other budgets.
    #[test]
    fn what_is_kept_is_what_would_be_found() {
        let pairs = (b' '..=b'~').flat_map(|a| {
            [b"ab", b"1)", b"(a", b"))", b"b)", b"((", b"1b", b"aa"].map(|rest| [&[a][..], rest].concat())
        });
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let words = bytes.chain(pairs).map(Some).chain([None]);
        let vocabulary = Vocabulary::from_bytes(words).unwrap();
        let end = TokenId(vocabulary.len() as u32 - 1);
        let vocabulary = vocabulary.with_eos([end]).unwrap();
        let limits = Limits { frames: 4, ..Limits::default() };
        let nested = r#"root ::= [ -'*-~]* | "(" root ")" [a-z]{3,9}"#;
        let counted =
            Constraint::json_schema(serde_json::json!({"type": "string", "maxLength": 700})).unwrap();
        let (nested, text) = (
            Constraint::grammar(Syntax::Gbnf, nested).unwrap(),
            Constraint::regex("([^)]|[)]{3})*").unwrap(),
        );
        let tables = [(&nested, "((a1 +)abc)b"), (&counted, "\"a(b)\""), (&text, "a)))b))")]
            .map(|(constraint, text)| (TokenTable::walk(constraint, &vocabulary, &limits).unwrap(), text));
        let mut met = [0; 2];
        for (table, text) in &tables {
            let on_device =
                TensorTable::new(&[table], vocabulary.len(), &TensorOptions::default(), &Device::flex());
            let on_device = on_device.unwrap();
            let Store::Host(host) = on_device.store() else { panic!("a table on the host") };
            let mut position = RowPosition::unlimited(table.start());
            for byte in text.bytes() {
                let budgets = (0..2).flat_map(|_| (1..40).map(|at| at * 17 % 40)).chain([720, 690, 1 << 20]);
                for budget in budgets {
                    let position = RowPosition { remaining: budget, ..position.clone() };
                    let mut row = host.row(&[0, 0]);
                    row.position = position.clone();
                    let kept = row.kept.find(&place(&position), budget.max(1) - 1).is_some();
                    met[usize::from(kept)] += 1;
                    let mut found = tokens(&legal(&row), vocabulary.len());
                    found.sort_unstable();
                    let may_follow = |&id: &u32| table.can_end(&table.after(&position, TokenId(id)));
                    let expected: Vec<u32> = (0..vocabulary.len() as u32).filter(may_follow).collect();
                    assert_eq!(
                        found, expected,
                        "{text:?} at {:?}, budget {budget}, kept: {kept}",
                        byte as char
                    );
                }
                position = table.after(&position, TokenId(byte.into()));
            }
        }
        assert!(met.iter().all(|&met| met > 50), "{met:?}");
    }
}
