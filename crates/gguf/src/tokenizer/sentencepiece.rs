//! The merges of SentencePiece, which a GGUF file stores as scores.
//!
//! SentencePiece joins the neighbours whose joined text has the highest score. So each way to cut a
//! token in two tokens is a merge, and merges are ordered by the score of the joined token. With
//! the scores `th` -1, `e▁` -2 and `the` -3 the merges are `t h`, `e ▁`, `th e`: the text `the▁`
//! becomes `th e▁`. transformers converts tokenizers of SentencePiece in the same way.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{TokenType, Tokens};

/// The merges of `tokens`, in the order in which they apply.
pub(super) fn merges(tokens: &Tokens, scores: &[f64]) -> Value {
    let is_normal =
        |text: &str| tokens.ids.get(text).is_some_and(|&id| tokens.types[id as usize] == TokenType::Normal);
    let mut merges: Vec<(f64, &str, &str)> = Vec::new();
    for (id, text, _) in tokens.of_type(|kind| kind == TokenType::Normal) {
        let cuts = text.char_indices().skip(1).map(|(at, _)| text.split_at(at));
        let cuts = cuts.filter(|(left, right)| is_normal(left) && is_normal(right));
        merges.extend(cuts.map(|(left, right)| (scores[id as usize], left, right)));
    }
    // Equal scores: the longer first part first.
    let length = |text: &str| Reverse(text.chars().count());
    merges.sort_by(|(a, a_left, a_right), (b, b_left, b_right)| {
        let by_score = b.total_cmp(a);
        by_score.then_with(|| (length(a_left), length(a_right)).cmp(&(length(b_left), length(b_right))))
    });
    merges.into_iter().map(|(_, left, right)| json!([left, right])).collect()
}
