//! Tokens with equal edges.

use crate::special::MAX_COLUMNS;
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result};
use burn_dfa_constraints::FreeText;
use burn_dfa_vocabulary::{TokenId, TokenKind, Vocabulary};

/// Tokens with equal edges, either all text or none of them text.
pub(crate) struct Group {
    /// In order.
    pub(crate) tokens: Vec<TokenId>,
    /// `(state, next)` in order.
    pub(crate) edges: Vec<(u32, u32)>,
    /// Whether each token is also read by its bytes.
    pub(crate) is_text: bool,
    /// Whether the group is all tokens not named by a constraint, a possibly large number.
    pub(crate) is_open: bool,
}

/// The tokens of a vocabulary to be read whole.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
    /// The group number of each token, or `NONE`; empty without groups.
    group_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// Tokens with their own columns, in order.
pub(super) type TokenColumns = Vec<(TokenId, u32)>;

impl Groups {
    /// # Errors
    /// If a named token is missing from the vocabulary, unused, or an end of sequence.
    pub(crate) fn new(free: &FreeText, vocabulary: &Vocabulary) -> Result<Self> {
        if !free.reads_whole() {
            return Ok(Self::default());
        }
        let mut markers = free.markers.clone();
        markers.sort_unstable_by_key(|&(state, token, _)| (token, state));
        markers.iter().try_for_each(|&(_, token, _)| check_token(token, vocabulary))?;
        let classes = &free.tokens.classes;
        for named in &classes.named {
            if named.wanted || named.token.index() >= vocabulary.len() {
                check_token(named.token, vocabulary)?;
            }
        }
        let mut class_edges = vec![Vec::new(); classes.count()];
        for &(state, class, next) in &free.tokens.edges {
            class_edges[class as usize].push((state, next));
        }
        let any = classes.others.is_some_and(|class| !class_edges[class as usize].is_empty());
        let mut found = Self { groups: Vec::new(), group_of: vec![NONE; vocabulary.len()] };
        let mut known = FastMap::default();
        let mut named = classes.named.iter().peekable();
        for (token, &kind) in (0..).map(TokenId).zip(vocabulary.kinds()) {
            let own = named.next_if(|named| named.token == token);
            if kind == TokenKind::Unused || vocabulary.eos().contains(&token) {
                continue;
            }
            let class = own.map_or(classes.others, |named| named.class);
            let class = class.filter(|&class| !class_edges[class as usize].is_empty());
            let marked = &markers[markers.partition_point(|mark| mark.1 < token)..];
            let marked = &marked[..marked.partition_point(|mark| mark.1 == token)];
            let is_text = marked.is_empty() && vocabulary.bytes(token).is_some();
            // Excluded text needs its own group if other text may be any token.
            let excluded = own.is_some() && is_text && any;
            if class.is_none() && marked.is_empty() && !excluded {
                continue;
            }
            // Each marker has its own group.
            let key = (class, is_text, marked.first().map(|mark| mark.1));
            let number = *known.entry(key).or_insert_with(|| {
                let mut edges: Vec<_> = marked.iter().map(|&(state, _, next)| (state, next)).collect();
                edges.extend(class.iter().flat_map(|&class| &class_edges[class as usize]));
                if !is_text {
                    idle(&mut edges, free.states);
                }
                edges.sort_unstable();
                let is_open = own.is_none() && marked.is_empty();
                found.groups.push(Group { tokens: Vec::new(), edges, is_text, is_open });
                found.groups.len() - 1
            });
            found.groups[number].tokens.push(token);
            found.group_of[token.index()] = number as u32;
        }
        Ok(found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of tokens of the vocabulary; 0 without groups.
    pub(crate) fn token_count(&self) -> usize {
        self.group_of.len()
    }

    /// The number of the group of a token.
    pub(crate) fn of(&self, token: TokenId) -> Option<usize> {
        self.group_of.get(token.index()).filter(|&&group| group != NONE).map(|&group| group as usize)
    }

    /// The tokens with their own column in a byte-level constraint, in order, and the columns,
    /// counted from 0: one per group of non-text tokens, and one per text token named by a
    /// constraint.
    ///
    /// # Errors
    /// If the columns exceed the limit of an artifact.
    pub(super) fn walked(&self) -> Result<(TokenColumns, Vec<Owner>)> {
        let (mut tokens, mut owners) = (Vec::new(), Vec::new());
        for (number, group) in self.groups.iter().enumerate() {
            if !group.is_text {
                tokens.extend(group.tokens.iter().map(|&token| (token, owners.len() as u32)));
                owners.push(Owner { group: number, text: None });
            } else if !group.is_open {
                for &token in &group.tokens {
                    tokens.push((token, owners.len() as u32));
                    owners.push(Owner { group: number, text: Some(token) });
                }
            }
        }
        if owners.len() > MAX_COLUMNS {
            return Err(Error::grammar_as_a_whole(format!(
                "it names {} tokens, too many of which are text for the byte-level form: choose the token-level form, by `Limits::token_level_entries` and `Limits::token_level_bytes`",
                tokens.len()
            )));
        }
        tokens.sort_unstable();
        Ok((tokens, owners))
    }
}

impl Groups {
    /// The tokens of [`walked`](Self::walked), and the number of their columns.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn walked_tokens(&self) -> Result<(Vec<(TokenId, u32)>, usize)> {
        self.walked().map(|(tokens, owners)| (tokens, owners.len()))
    }
}

/// The owner of a column in a byte-level constraint: a group, or one text token of a group.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) group: usize,
    pub(super) text: Option<TokenId>,
}

/// Adds self-loops in the states of free text, 1 to `states`, for non-text tokens without an edge.
fn idle(edges: &mut Vec<(u32, u32)>, states: u32) {
    let mut known: Vec<u32> =
        edges.iter().map(|&(state, _)| state).filter(|&state| state <= states).collect();
    known.sort_unstable();
    edges
        .extend((1..=states).filter(|state| known.binary_search(state).is_err()).map(|state| (state, state)));
}

/// Rejects a token that a constraint cannot name: the vocabulary lacks it or does not use it, or it
/// ends the sequence.
pub(crate) fn check_token(token: TokenId, vocabulary: &Vocabulary) -> Result<()> {
    if token.index() >= vocabulary.len() {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, the vocabulary ends at {}",
            vocabulary.len()
        )));
    }
    if vocabulary.kind(token) == TokenKind::Unused && !vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint names token {token}, which the vocabulary does not use"
        )));
    }
    if vocabulary.eos().contains(&token) {
        return Err(Error::incompatible_vocabulary(format!(
            "the constraint has a transition on token {token}, which ends the sequence: leave it out, accepting states allow it by themselves"
        )));
    }
    Ok(())
}
