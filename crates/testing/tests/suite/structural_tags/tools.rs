//! Compares the automata and compiled constraints of tools with their structural tags, and tests
//! the reader of outputs in tokens.

use burn_dfa_tokens::{
    Constraint,
    constraint::{Reasoning, Reply, ReplyEvent, Tool, ToolChoice, ToolFormat, Tools},
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::leaves::{self, Leaves};
use super::masks::{self, Tokens};
use super::random::{InputItem, Writer, changed};
use super::{Refused, limits, read};

/// Tools with common prefixes in their names, and a random choice.
fn catalogue(rng: &mut StdRng, format: ToolFormat) -> Tools {
    let parameters = leaves::parameters();
    let tool = |name: &&str, rng: &mut StdRng| {
        Tool::new(*name).with_parameters(parameters.choose(rng).unwrap().clone())
    };
    let names = ["f", "ff", "g"];
    let tools: Vec<Tool> = names[..rng.random_range(1..4)].iter().map(|name| tool(name, rng)).collect();
    let choice = match rng.random_range(0..6) {
        0 => ToolChoice::Required,
        1 => ToolChoice::Named("f".to_owned()),
        2 => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    let tools =
        Tools::new(tools).unwrap().with_format(format).with_choice(choice).with_parallel(rng.random());
    let reasoning = match format {
        ToolFormat::Harmony => format.reasoning().unwrap(),
        _ => Reasoning::think(),
    };
    match rng.random_range(0..6) {
        0 => tools.with_reasoning(reasoning),
        1 => tools.with_reasoning(reasoning.optional()),
        _ => tools,
    }
}

/// A likely output.
fn output(writer: &Writer, tools: &Tools, rng: &mut StdRng) -> String {
    let mut items = Vec::new();
    writer.draw(&tools.to_structural_tag().unwrap().format, rng, &mut items);
    let text = |item| match item {
        InputItem::Text(text) => text,
        InputItem::Token(token) => unreachable!("{token:?} in a text"),
    };
    items.into_iter().map(text).collect()
}

/// The reply that a reader assembles from an output in these chunks, by events alone.
fn joined<'t>(tools: &Tools, chunks: impl IntoIterator<Item = &'t [u8]>) -> Reply {
    let mut reader = tools.reader().unwrap();
    let mut events: Vec<ReplyEvent> = Vec::new();
    for chunk in chunks {
        events.extend(reader.push(chunk).unwrap());
    }
    events.extend(reader.finish().unwrap());
    let mut reply = Reply::default();
    for event in &events {
        reply.add(event);
    }
    assert_eq!(reply, *reader.reply());
    reply
}

#[test]
fn catalogs_match_their_tags_and_are_read_in_any_tokens() {
    const ROUNDS: u64 = 120;
    let leaves = Leaves::of_tools();
    let writer = Writer { leaves: &leaves, tokens: &[] };
    let (mut texts, mut others, mut calls) = (0, 0, 0);
    for seed in 0..ROUNDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let tools = catalogue(&mut rng, ToolFormat::ALL[seed as usize % ToolFormat::ALL.len()]);
        let tag = tools.to_structural_tag().unwrap();
        let automaton = Constraint::structural_tag(&tag).unwrap().to_automaton(&limits());
        let (automaton, format) = (automaton.unwrap().expect("text"), tag.format);
        for _ in 0..6 {
            let text = output(&writer, &tools, &mut rng);
            let near = changed(&mut rng, &text);
            for text in [text, near] {
                if !read(&automaton, &format, &leaves, text.as_bytes()) {
                    others += 1;
                    continue;
                }
                texts += 1;
                let whole = tools.read(&text).unwrap_or_else(|error| panic!("{error}: {text:?}, {tools:?}"));
                calls += whole.calls.len();
                for call in &whole.calls {
                    let tool = tools.tools().iter().find(|tool| tool.name == call.name).expect("a tool");
                    let judge = jsonschema::validator_for(tool.parameters.as_ref().unwrap()).unwrap();
                    assert!(judge.is_valid(&call.value().unwrap()), "{call:?} of {text:?}");
                }
                for cut in 0..text.len() {
                    let (one, other) = text.as_bytes().split_at(cut);
                    assert_eq!(joined(&tools, [one, other]), whole, "{text:?} cut at {cut}");
                }
                let mut lengths = std::iter::repeat_with(|| rng.random_range(1..6));
                let mut rest = text.as_bytes();
                let tokens = std::iter::from_fn(|| {
                    let (token, after) = rest.split_at(lengths.next()?.min(rest.len()));
                    rest = after;
                    (!token.is_empty()).then_some(token)
                });
                assert_eq!(joined(&tools, tokens), whole, "{text:?}");
            }
        }
    }
    println!("{texts} texts with {calls} calls, {others} others");
    assert!(texts > 500 && others > 500 && calls > 250, "{texts} {others} {calls}");
}

#[test]
fn masks_of_catalogs_match_their_tags() {
    const ROUNDS: u64 = 24;
    let leaves = Leaves::of_tools();
    let writer = Writer { leaves: &leaves, tokens: &[] };
    let mut refused = Refused::default();
    let mut words = 0;
    for seed in 0..ROUNDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let tools = catalogue(&mut rng, ToolFormat::ALL[seed as usize % ToolFormat::ALL.len()]);
        let format = tools.to_structural_tag().unwrap().format;
        for tokens in [Tokens::Bytes, Tokens::Words] {
            words += masks::check(&writer, &format, tokens, 40, &mut rng, &mut refused);
        }
    }
    println!("{words} words");
    assert_eq!(refused.total(), 0, "{refused:?}");
    assert!(words > 1_000, "{words}");
}
