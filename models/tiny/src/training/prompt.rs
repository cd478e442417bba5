//! The special tokens, and the prompt that the chat template writes with them.

use crate::generator::{AnswerExample, CallExample, Example};

/// Ends a record; also the padding.
pub const END: &str = "<|endoftext|>";

/// Precedes the sentence.
pub const PROMPT_START: &str = "<|user|>";

/// Separates the sentence and the record.
pub const PROMPT_END: &str = "<|assistant|>";

/// The chat template of `tokenizer_config.json`.
pub(super) const CHAT_TEMPLATE: &str = concat!(
    "{% for tool in tools or [] %}",
    "{% set parameters = tool['function']['parameters'] or {} %}",
    "{{ tool['function']['name'] }}(",
    "{% for name, schema in (parameters['properties'] or {}).items() %}",
    "{{ name }}{% if name not in (parameters['required'] or []) %}?{% endif %}:",
    "{% if schema['enum'] %}{{ schema['enum'] | join('|') }}{% else %}{{ schema['type'] }}{% endif %}",
    "{% if not loop.last %},{% endif %}",
    "{% endfor %})\n",
    "{% endfor %}",
    "{% for message in messages %}",
    "{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}",
    "{% elif message['role'] == 'tool' %}<|user|><tool_response>{{ message['content'] }}</tool_response>",
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] or '' }}",
    "{% for call in message['tool_calls'] or [] %}{% set arguments = call['function']['arguments'] %}",
    "{% if not loop.first %}{{ '\\n' }}{% endif %}",
    "<tool_call>\n{\"name\": \"{{ call['function']['name'] }}\", \"arguments\": ",
    "{% if arguments is string %}{{ arguments }}{% else %}{{ arguments | tojson(separators=(',', ':')) }}{% endif %}",
    "}\n</tool_call>",
    "{% endfor %}<|endoftext|>",
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
);

/// The prompt of one sentence, as the chat template writes it.
pub fn chat_prompt(sentence: &str) -> String {
    format!("{PROMPT_START}{sentence}{PROMPT_END}")
}

/// A training example: the prompt, as the chat template writes it, and the answer without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// The given text.
    pub prompt: String,
    /// The text to learn.
    pub answer: String,
}

impl From<&Example> for Lesson {
    fn from(example: &Example) -> Self {
        Self { prompt: chat_prompt(&example.prompt), answer: example.record.clone() }
    }
}

impl From<&CallExample> for Lesson {
    fn from(example: &CallExample) -> Self {
        let prompt = example.catalogue() + &chat_prompt(&example.prompt);
        Self { prompt, answer: example.answer.clone() }
    }
}

impl From<&AnswerExample> for Lesson {
    fn from(example: &AnswerExample) -> Self {
        let Self { prompt, answer: call } = Self::from(&example.request);
        let response = chat_prompt(&format!("<tool_response>{}</tool_response>", example.result));
        Self { prompt: format!("{prompt}{call}{END}{response}"), answer: example.answer.clone() }
    }
}
