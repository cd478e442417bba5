//! The results of tools, and the sentences that report them.

use serde_json::{Value, json};

use super::Call;
use crate::generator::random::Random;
use crate::generator::records::{capitalized, fill, item};

/// Weather conditions.
const SKIES: &[&str] = &["clear", "cloudy", "foggy", "rainy", "snowy", "stormy", "sunny", "windy"];

/// Errors of tools.
const ERRORS: &[&str] = &[
    "it is closed",
    "it takes too long",
    "not allowed",
    "nothing found",
    "the network is down",
    "try again later",
    "unknown name",
    "unknown place",
];

/// Number of failed calls per 100.
const FAILED: usize = 10;

/// The result of a call, and the answer.
pub(super) fn draw(call: &Call, random: &mut Random) -> (Value, String) {
    let result =
        if random.chance(FAILED) { json!({ "error": random.pick(ERRORS) }) } else { returned(call, random) };
    let template = template(call, &result);
    let values: Vec<(&str, String)> = call
        .arguments
        .iter()
        .chain(result.as_object().expect("tools return objects"))
        .map(|(name, value)| (name.as_str(), plain(value)))
        .collect();
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = fill(&template, &values);
    (result, answer)
}

/// The result of a successful call.
fn returned(call: &Call, random: &mut Random) -> Value {
    match call.tool.name {
        "get_weather" => json!({ "sky": random.pick(SKIES), "degrees": random.between(2, 38) }),
        "calculate" => json!({ "result": random.between(2, 9999) }),
        "convert_currency" => json!({ "result": random.between(2, 9999) }),
        "find_train" => {
            let leaves = format!("{:02}:{:02}", random.between(6, 23), random.below(60));
            json!({ "leaves": leaves, "platform": random.between(1, 24) })
        }
        "translate" => json!({ "translation": capitalized(&item(random)) }),
        _ => json!({ "done": true }),
    }
}

/// The sentence, with the names of arguments and results in place of their values.
fn template(call: &Call, result: &Value) -> String {
    let set = |name: &str| call.arguments.get(name).is_some_and(|value| value == true);
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    if result.get("error").is_some() {
        return "That did not work: {error}.".into();
    }
    match call.tool.name {
        "get_weather" => match text("day") {
            "tomorrow" => "In {city} it will be {sky} tomorrow, with {degrees} degrees.",
            _ => "In {city} it is {sky}, with {degrees} degrees.",
        },
        "calculate" => "{a} {op} {b} is {result}.",
        "convert_currency" => "{amount} {from} are {result} {to}.",
        "find_train" => "The train to {to} leaves at {leaves} from platform {platform}.",
        "set_timer" => "The timer for the {name} is set to {minutes} minutes.",
        "set_alarm" if set("daily") => "The alarm is set for {time} every day.",
        "set_alarm" => "The alarm is set for {time}.",
        "add_reminder" => "I will remind you at {time}.",
        "set_light" => {
            let place = if text("room").contains("'s ") { "{room}" } else { "the {room}" };
            return format!("The light in {place} is {}.", if set("on") { "on" } else { "off" });
        }
        "play_music" => "This is {artist}.",
        "translate" => "In {language} it is \"{translation}\".",
        "send_message" => "The message to {to} is sent.",
        "book_table" => "A table for {people} is booked at {time}.",
        other => unreachable!("{other} is no tool"),
    }
    .into()
}

/// A value in the form for sentences.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}
