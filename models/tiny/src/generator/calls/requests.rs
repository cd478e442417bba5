//! Draws the arguments of a tool and the sentence that asks for it.

use serde_json::{Map, Value, json};

use super::templates::*;
use super::words::{COLOURS, CURRENCIES, LANGUAGES, MESSAGES, PHRASES, ROOMS, TASKS, TIMED};
use crate::generator::random::Random;
use crate::generator::records::{NUMBER_WORDS, capitalized, fill, first_name, full_name, item};
use crate::generator::words::{CITIES, EVENT_KINDS, JOBS, THINGS};

/// A tool, a sentence, and the arguments.
pub(super) type Request = (&'static str, String, Map<String, Value>);

/// One request of each tool.
const REQUESTS: [fn(&mut Random) -> Request; 12] = [
    weather,
    calculation,
    currency,
    train,
    timer,
    alarm,
    reminder,
    light,
    music,
    translation,
    message,
    table,
];

pub(super) fn draw(random: &mut Random) -> Request {
    let request = REQUESTS[random.below(REQUESTS.len())];
    let (tool, sentence, arguments) = request(random);
    (tool, capitalized(&sentence), arguments)
}

fn weather(random: &mut Random) -> Request {
    let city = random.pick(CITIES);
    if random.chance(40) {
        let sentence = fill(random.pick(WEATHER), &[("city", city)]);
        return ("get_weather", sentence, object(json!({ "city": city })));
    }
    let day = random.pick(&["today", "tomorrow"]);
    let sentence = fill(random.pick(WEATHER_ON_A_DAY), &[("city", city), ("day", day)]);
    ("get_weather", sentence, object(json!({ "city": city, "day": day })))
}

fn calculation(random: &mut Random) -> Request {
    let (op, templates) = [("plus", PLUS), ("minus", MINUS), ("times", TIMES)][random.below(3)];
    let (a, b) = (random.between(2, 240), random.between(2, 240));
    let sentence = fill(random.pick(templates), &[("a", &a.to_string()), ("b", &b.to_string())]);
    ("calculate", sentence, object(json!({ "a": a, "op": op, "b": b })))
}

fn currency(random: &mut Random) -> Request {
    let (from, to) = two(CURRENCIES, random);
    let amount = random.between(2, 960);
    let sentence =
        fill(random.pick(CURRENCY), &[("amount", &amount.to_string()), ("from", from), ("to", to)]);
    ("convert_currency", sentence, object(json!({ "amount": amount, "from": from, "to": to })))
}

fn train(random: &mut Random) -> Request {
    let (from, to) = two(CITIES, random);
    if random.chance(50) {
        let sentence = fill(random.pick(TRAIN), &[("from", from), ("to", to)]);
        return ("find_train", sentence, object(json!({ "from": from, "to": to })));
    }
    let time = time(random);
    let sentence = fill(random.pick(TRAIN_AT), &[("from", from), ("to", to), ("time", &time)]);
    ("find_train", sentence, object(json!({ "from": from, "to": to, "time": time })))
}

fn timer(random: &mut Random) -> Request {
    let (minutes, written) = number(90, random);
    let name = random.pick(TIMED);
    let sentence = fill(random.pick(TIMER), &[("minutes", &written), ("name", name)]);
    ("set_timer", sentence, object(json!({ "minutes": minutes, "name": name })))
}

fn alarm(random: &mut Random) -> Request {
    let daily = random.chance(50);
    let time = time(random);
    let sentence = fill(random.pick(if daily { ALARM_DAILY } else { ALARM }), &[("time", &time)]);
    ("set_alarm", sentence, object(json!({ "time": time, "daily": daily })))
}

fn reminder(random: &mut Random) -> Request {
    let text = free_text(TASKS, random);
    let time = time(random);
    let sentence = fill(random.pick(REMINDER), &[("text", &text), ("time", &time)]);
    ("add_reminder", sentence, object(json!({ "text": text, "time": time })))
}

fn light(random: &mut Random) -> Request {
    let on = random.chance(50);
    let owned = random.chance(50);
    let room = if owned { format!("{}'s room", first_name(random)) } else { random.pick(ROOMS).to_string() };
    let place = if owned { room.clone() } else { format!("the {room}") };
    let sentence = fill(random.pick(if on { LIGHT_ON } else { LIGHT_OFF }), &[("room", &place)]);
    ("set_light", sentence, object(json!({ "room": room, "on": on })))
}

fn music(random: &mut Random) -> Request {
    let shuffle = random.chance(50);
    let artist = full_name(random);
    let sentence = fill(random.pick(if shuffle { MUSIC_SHUFFLED } else { MUSIC }), &[("artist", &artist)]);
    ("play_music", sentence, object(json!({ "artist": artist, "shuffle": shuffle })))
}

fn translation(random: &mut Random) -> Request {
    let text = free_text(PHRASES, random);
    let language = random.pick(LANGUAGES);
    let sentence = fill(random.pick(TRANSLATION), &[("text", &text), ("language", language)]);
    ("translate", sentence, object(json!({ "text": text, "language": language })))
}

fn message(random: &mut Random) -> Request {
    let to = if random.chance(50) { full_name(random) } else { first_name(random) };
    let text = free_text(MESSAGES, random);
    let sentence = fill(random.pick(MESSAGE), &[("to", &to), ("text", &text)]);
    ("send_message", sentence, object(json!({ "to": to, "text": text })))
}

fn table(random: &mut Random) -> Request {
    let name = full_name(random);
    let (people, written) = number(24, random);
    let time = time(random);
    let sentence = fill(random.pick(TABLE), &[("name", &name), ("people", &written), ("time", &time)]);
    ("book_table", sentence, object(json!({ "name": name, "people": people, "time": time })))
}

/// A text of several words, from a separate template.
fn free_text(templates: &[&str], random: &mut Random) -> String {
    let values = [
        ("name", full_name(random)),
        ("first", first_name(random)),
        ("item", item(random)),
        ("time", time(random)),
    ];
    let words = [
        ("city", random.pick(CITIES)),
        ("thing", random.pick(THINGS)),
        ("job", random.pick(JOBS)),
        ("event", random.pick(EVENT_KINDS)),
        ("colour", random.pick(COLOURS)),
    ];
    let values: Vec<(&str, &str)> =
        values.iter().map(|(field, value)| (*field, value.as_str())).chain(words).collect();
    fill(random.pick(templates), &values)
}

/// A number of at least two and how the sentence writes it: small ones may be spelled out.
fn number(max: usize, random: &mut Random) -> (usize, String) {
    if random.chance(25) {
        let index = random.below(NUMBER_WORDS.len());
        return (index + 2, NUMBER_WORDS[index].to_string());
    }
    let value = random.between(2, max);
    (value, value.to_string())
}

fn time(random: &mut Random) -> String {
    format!("{:02}:{:02}", random.between(6, 23), random.below(12) * 5)
}

/// Two different words of a list.
fn two<'a>(words: &[&'a str], random: &mut Random) -> (&'a str, &'a str) {
    let first = random.below(words.len());
    let second = (first + random.between(1, words.len() - 1)) % words.len();
    (words[first], words[second])
}

/// The fields of a literal object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => unreachable!("{other} is written as an object above"),
    }
}
