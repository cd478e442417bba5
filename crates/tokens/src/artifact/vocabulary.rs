//! Checks of the arrays of an artifact against a vocabulary.

use super::arrays::{Declared, Form, NO_PATH, StoredArray};
use super::error::broken;
use super::stored::StoredTable;
use crate::symbols::{FIRST_SPECIAL, TokenSymbols};
use crate::{
    BudgetInterval, CompiledConstraint, RowPosition, StateId, TokenReading, Unread, reserved_column,
};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, TokenKind, Vocabulary};

impl StoredTable<'_> {
    /// Checks that tokens are read as in `vocabulary`.
    pub(super) fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<()> {
        let (array, check): (_, fn(&Self, &Vocabulary, TokenId) -> _) = match self.form {
            Form::TokenLevel => (StoredArray::Class, Self::check_class),
            Form::ByteLevel | Form::Pushdown => (StoredArray::Offsets, Self::check_spelling),
        };
        if self.tokens() != vocabulary.len() {
            let Declared { name, .. } = array.declare();
            let what = format!("{} tokens, the vocabulary has {}", self.tokens(), vocabulary.len());
            return Err(broken(name, what));
        }
        (0..vocabulary.len() as u32).map(TokenId).try_for_each(|token| check(self, vocabulary, token))
    }

    fn check_class(&self, vocabulary: &Vocabulary, token: TokenId) -> Result<()> {
        let reserved = reserved_column(vocabulary, token);
        // Special tokens match if transitions name them.
        let free = vocabulary.kind(token) != TokenKind::Unused && reserved != CompiledConstraint::EOS;
        let found = self[StoredArray::Class][token.index()];
        if found == reserved || free && found >= CompiledConstraint::RESERVED_COLUMNS as u32 {
            return Ok(());
        }
        Err(broken("class", format!("token {token}: {found}, the vocabulary says {reserved}")))
    }

    fn check_spelling(&self, vocabulary: &Vocabulary, token: TokenId) -> Result<()> {
        let found = self.symbols_of(token);
        // A marker may be any writable token.
        let free = vocabulary.bytes(token).is_some()
            || reserved_column(vocabulary, token) == CompiledConstraint::UNMATCHED;
        let spelled = TokenSymbols::new(vocabulary, &[]).of(token);
        if free && found[0] >= FIRST_SPECIAL || spelled.eq(found.iter().copied()) {
            return Ok(());
        }
        Err(broken("symbols", format!("token {token}: not as the vocabulary spells it")))
    }

    /// Checks the distances to the end if some live bytes are not tokens, by following every token
    /// from every state, as compilation does.
    pub(super) fn check_token_distances(&self, vocabulary: &Vocabulary, meter: &Meter) -> Result<()> {
        let parts = self.borrowed().into_parts(vocabulary);
        let TokenReading::Bytes { special, .. } = &parts.reading else { return Ok(()) };
        let trie = vocabulary.trie();
        for state in (StateId::RESERVED..self.states() as u32).map(StateId) {
            meter.time()?;
            let landings = special.of(&parts.next, state).iter().map(|&to| self.distance(StateId(to)));
            let mut nearest = landings.min().unwrap_or(NO_PATH);
            let position = RowPosition::unlimited(state);
            let mut left = BudgetInterval::new(RowPosition::UNLIMITED - 1);
            let shortest = parts.shortest(state);
            let fits = |id: &TokenId| vocabulary.bytes(*id).is_some_and(|bytes| bytes.len() >= shortest);
            parts.each_text(&position, &mut left, [Unread::all(trie)], |tokens, landing| {
                if shortest <= 1 || tokens.iter().any(fits) {
                    nearest = nearest.min(self.distance(landing));
                }
            });
            self.check_distance(state, nearest)?;
        }
        Ok(())
    }
}
