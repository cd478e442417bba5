//! The names of tokens that end a sequence.

/// Special tokens that end a sequence in common models.
const ENDS: [&str; 16] = [
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "[|endofturn|]",
];

/// The harmony format's end of a message, after which another message may follow, and its end of an
/// answer, which identifies the format.
const HARMONY: (&str, &str) = ("<|end|>", "<|return|>");

/// Whether a special token with this name ends a sequence. `has` tells whether the vocabulary has a
/// special token with a name.
///
/// ```
/// use burn_dfa_gguf::is_end;
///
/// assert!(is_end("<|im_end|>", |_| false));
/// assert!(!is_end("<|im_start|>", |_| false));
/// // In the harmony format other messages follow <|end|>.
/// assert!(!is_end("<|end|>", |name| name == "<|return|>"));
/// ```
pub fn is_end(name: &str, has: impl FnOnce(&str) -> bool) -> bool {
    let (message_end, answer_end) = HARMONY;
    ENDS.contains(&name) && !(name == message_end && has(answer_end))
}
