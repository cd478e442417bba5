//! Tool calls: a few tools are offered, and a sentence asks for one of them, for a missing tool, or
//! for nothing.
//!
//! The answer is a call in the form of Hermes and Qwen, with the arguments in compact JSON, or a
//! short text:
//!
//! ```text
//! get_weather(city:string,day?:today|tomorrow)
//! set_alarm(time:string,daily:boolean)
//! <|user|>Will it rain in Lisbon tomorrow?<|assistant|><tool_call>
//! {"name": "get_weather", "arguments": {"city":"Lisbon","day":"tomorrow"}}
//! </tool_call><|endoftext|>
//! ```
//!
//! The result of the tool becomes the next user turn, and the answer to it is a sentence:
//!
//! ```text
//! <|user|><tool_response>{"sky":"rainy","degrees":14}</tool_response><|assistant|>In Lisbon it will be rainy tomorrow, with 14 degrees.<|endoftext|>
//! ```

mod answers;
mod requests;
mod templates;
mod words;

use serde_json::{Map, Value};

use super::random::Random;
use super::records::{fill, full_name};
use super::words::{CITIES, THINGS};
use super::{Generator, Split};
use crate::tools::{Tool, catalogue, tool, tools};

/// The beginning of a call, up to the name of the tool.
pub const CALL_START: &str = "<tool_call>\n{\"name\": \"";

/// The text between the name of the tool and the arguments.
pub const CALL_ARGUMENTS: &str = "\", \"arguments\": ";

/// The end of a call, after the arguments.
pub const CALL_END: &str = "}\n</tool_call>";

/// The answer to a request that no tool on offer can fulfill.
pub const NO_TOOL: &str = "I have no tool for that.";

/// The answer to a greeting.
pub const GREETING: &str = "Hello! How can I help?";

/// The answer to thanks.
pub const WELCOME: &str = "You are welcome.";

/// Greatest number of characters of a conversation with an answer; the model reads no longer ones.
const LONGEST_ANSWERED: usize = 370;

/// Number of sentences per 100 that ask for a tool on offer.
const CALLS: usize = 58;

/// Number of sentences per 100 that ask for a tool that is not on offer.
const UNMET: usize = 32;

/// The call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub tool: &'static Tool,
    /// The arguments, in the order that the tool declares.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// The call as the model writes it.
    pub fn text(&self) -> String {
        let arguments = serde_json::to_string(&self.arguments).expect("arguments are JSON");
        format!("{CALL_START}{}{CALL_ARGUMENTS}{arguments}{CALL_END}", self.tool.name)
    }
}

/// Tools on offer, a sentence, and its answer.
///
/// ```
/// use burn_dfa_tiny::generator::{Generator, Split};
///
/// let example = Generator::new(1).call_example(Split::Train, 0);
/// assert_eq!(example.call.is_some(), example.answer.starts_with("<tool_call>"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallExample {
    /// The tools on offer.
    pub tools: Vec<&'static Tool>,
    /// The sentence, without the chat template.
    pub prompt: String,
    /// The call, if the sentence asks for a tool on offer.
    pub call: Option<Call>,
    /// The text of the call, or a short text instead.
    pub answer: String,
    /// The value that decides the split: the requested tool with all arguments, or the sentence.
    pub key: String,
}

impl CallExample {
    /// The lines of the tools in the prompt, before the user's turn.
    pub fn catalogue(&self) -> String {
        catalogue(&self.tools)
    }
}

/// A call, the result of the tool, and the sentence that reports it.
///
/// ```
/// use burn_dfa_tiny::generator::{Generator, Split};
///
/// let example = Generator::new(1).answer_example(Split::Train, 0);
/// assert!(example.result.is_object());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerExample {
    /// The tools, the sentence and the call, which is always present.
    pub request: CallExample,
    /// The result of the tool: an object, with only `error` if the call failed.
    pub result: Value,
    /// The sentence.
    pub answer: String,
}

impl AnswerExample {
    /// The length of the conversation, from the tools to the answer.
    fn characters(&self) -> usize {
        let Self { request, result, answer } = self;
        [&request.catalogue(), &request.prompt, &request.answer, &result.to_string(), answer]
            .iter()
            .map(|text| text.chars().count())
            .sum()
    }
}

impl Generator {
    /// Example number `index` of the answers from tool results, of a split of the calls.
    pub fn answer_example(&self, split: Split, index: u64) -> AnswerExample {
        let mut random = Random::new(self.seed.rotate_left(8), index);
        loop {
            let request = draw(&mut random);
            if let Some(call) = request.call.as_ref().filter(|_| Split::of(&request.key) == split) {
                let (result, answer) = answers::draw(call, &mut random);
                let example = AnswerExample { request, result, answer };
                if example.characters() <= LONGEST_ANSWERED {
                    return example;
                }
            }
        }
    }

    /// Example number `index` of the tool calls of a split.
    pub fn call_example(&self, split: Split, index: u64) -> CallExample {
        let mut random = Random::new(!self.seed, index);
        loop {
            let example = draw(&mut random);
            if Split::of(&example.key) == split {
                return example;
            }
        }
    }
}

fn draw(random: &mut Random) -> CallExample {
    let drawn = random.below(100);
    if drawn < CALLS + UNMET { request(drawn < CALLS, random) } else { small_talk(random) }
}

/// A sentence that asks for a tool; `met` tells whether the tool is on offer.
fn request(met: bool, random: &mut Random) -> CallExample {
    let (name, sentence, arguments) = requests::draw(random);
    let call = Call { tool: tool(name).expect("every request is for a tool"), arguments };
    let values: Vec<String> = call.arguments.values().map(Value::to_string).collect();
    let key = format!("{name} {}", values.join(" "));
    let prompt = format!("{}{sentence}", random.pick(templates::OPENINGS));
    let tools = offer(met.then_some(call.tool), call.tool, random);
    let answer = if met { call.text() } else { NO_TOOL.to_string() };
    CallExample { tools, prompt, call: met.then_some(call), answer, key }
}

fn small_talk(random: &mut Random) -> CallExample {
    let (templates, answer) =
        if random.chance(50) { (templates::GREETINGS, GREETING) } else { (templates::THANKS, WELCOME) };
    let values =
        [("name", &*full_name(random)), ("city", random.pick(CITIES)), ("thing", random.pick(THINGS))];
    let prompt = fill(random.pick(templates), &values);
    let first = random.below(tools().len());
    let tools = offer(None, &tools()[first], random);
    CallExample { tools, key: prompt.clone(), prompt, call: None, answer: answer.to_string() }
}

/// Two to four tools in any order: `with`, if it is given, and others except `without`.
fn offer(with: Option<&'static Tool>, without: &Tool, random: &mut Random) -> Vec<&'static Tool> {
    let count = random.between(2, 4);
    let mut others: Vec<&Tool> = tools().iter().filter(|tool| tool.name != without.name).collect();
    let mut offered = Vec::with_capacity(count);
    offered.extend(with);
    while offered.len() < count {
        offered.push(others.swap_remove(random.below(others.len())));
    }
    let last = count - 1;
    offered.swap(0, random.between(0, last));
    offered
}
