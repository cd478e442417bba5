//! The special tokens and the prompt that the chat template makes of them.

/// Ends a record; also the padding.
pub const END: &str = "<|endoftext|>";

/// Stands before the sentence.
pub const PROMPT_START: &str = "<|user|>";

/// Stands between the sentence and the record.
pub const PROMPT_END: &str = "<|assistant|>";

/// The chat template, as it stands in `tokenizer_config.json`.
pub(super) const CHAT_TEMPLATE: &str = "{% for message in messages %}{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|endoftext|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// What the chat template makes of one sentence.
pub fn chat_prompt(sentence: &str) -> String {
    format!("{PROMPT_START}{sentence}{PROMPT_END}")
}
