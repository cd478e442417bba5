//! Tokens that follow the same edges.

use crate::automaton::FastMap;
use crate::constraint::FreeText;
use crate::error::{Error, Result};
use crate::table::compile::check_token;
use crate::table::special::MOST_COLUMNS;
use crate::vocabulary::{TokenId, TokenKind, Vocabulary};

/// Tokens that follow the same edges, and are either all text or none of them.
pub(in crate::table) struct Group {
    /// In order.
    pub(in crate::table) tokens: Vec<TokenId>,
    /// `(state, next)` in order.
    pub(in crate::table) edges: Vec<(u32, u32)>,
    /// Whether each token is read by its bytes as well.
    pub(in crate::table) is_text: bool,
    /// Whether it is all tokens that no constraint names, so that there may be many.
    pub(in crate::table) is_open: bool,
}

/// The tokens of a vocabulary that are read whole.
#[derive(Default)]
pub(in crate::table) struct Groups {
    pub(in crate::table) groups: Vec<Group>,
    /// By token the number of its group, or `NONE`; empty where there are no groups.
    group_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// Tokens with columns of their own, in order.
pub(super) type TokenColumns = Vec<(TokenId, u32)>;

impl Groups {
    /// # Errors
    /// Where a token is named that the vocabulary lacks, does not use, or ends a sequence with.
    pub(in crate::table) fn new(free: &FreeText, vocabulary: &Vocabulary) -> Result<Self> {
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
            // Text that is excluded is told from other text, where that may be any.
            let excluded = own.is_some() && is_text && any;
            if class.is_none() && marked.is_empty() && !excluded {
                continue;
            }
            // A marker is a group of its own.
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

    pub(in crate::table) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The number of tokens of the vocabulary; 0 where there are no groups.
    pub(in crate::table) fn token_count(&self) -> usize {
        self.group_of.len()
    }

    /// The number of the group of a token.
    pub(in crate::table) fn of(&self, token: TokenId) -> Option<usize> {
        self.group_of.get(token.index()).filter(|&&group| group != NONE).map(|&group| group as usize)
    }

    /// The tokens that have a column of their own in a walked table, in order, and the columns, counted from 0: of tokens that
    /// are not text one for a group, and one for each other token but those that no constraint names.
    ///
    /// # Errors
    /// Where there are more columns than an artefact may have.
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
        if owners.len() > MOST_COLUMNS {
            return Err(Error::grammar_as_a_whole(format!(
                "it names {} tokens, too many of which are text for a table that is walked: let it be tabulated, by `Limits::tabulated_entries` and `Limits::tabulated_bytes`",
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
    pub(in crate::table) fn walked_tokens(&self) -> Result<(Vec<(TokenId, u32)>, usize)> {
        self.walked().map(|(tokens, owners)| (tokens, owners.len()))
    }
}

/// What has a column in a walked table: a group, or one token of it that is text.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) group: usize,
    pub(super) text: Option<TokenId>,
}

/// Adds that what is not text leaves the states of free text, 1 to `states`, as they are where it has no edge.
fn idle(edges: &mut Vec<(u32, u32)>, states: u32) {
    let mut known: Vec<u32> =
        edges.iter().map(|&(state, _)| state).filter(|&state| state <= states).collect();
    known.sort_unstable();
    edges
        .extend((1..=states).filter(|state| known.binary_search(state).is_err()).map(|state| (state, state)));
}
