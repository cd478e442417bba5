//! The merges of SentencePiece, which a GGUF file stores as scores.
//!
//! SentencePiece joins the neighbors whose joined text has the highest score. So each way to cut a
//! token in two tokens is a merge, and merges are ordered by the score of the joined token. With
//! the scores `th` -1, `e▁` -2 and `the` -3 the merges are `t h`, `e ▁`, `th e`: the text `the▁`
//! becomes `th e▁`. transformers converts tokenizers of SentencePiece in the same way.

use super::{TokenType, Tokens};

/// The merges of `tokens`, in the order in which they apply.
pub(super) fn merges<'a>(tokens: &Tokens<'a>, scores: &[f64]) -> Vec<(&'a str, &'a str)> {
    let is_normal =
        |text: &str| tokens.ids.get(text).is_some_and(|&id| tokens.types[id as usize] == TokenType::Normal);
    let mut merges: Vec<(f64, u32, &str, &str)> = Vec::new();
    for (id, text, _) in tokens.of_type(|kind| kind == TokenType::Normal) {
        let cuts = text.char_indices().skip(1).map(|(at, _)| text.split_at(at));
        let cuts = cuts.filter(|(left, right)| is_normal(left) && is_normal(right));
        merges.extend(cuts.map(|(left, right)| (scores[id as usize], id, left, right)));
    }
    // Equal scores: in the order of the ids.
    let ids = |&(_, id, left, right): &(f64, u32, &str, &str)| (id, tokens.ids[left], tokens.ids[right]);
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| ids(a).cmp(&ids(b))));
    merges.into_iter().map(|(_, _, left, right)| (left, right)).collect()
}
