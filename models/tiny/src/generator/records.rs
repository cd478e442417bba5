//! Draws the values of a record, writes the record as JSON and the sentence from a template.

use super::random::Random;
use super::templates::{EVENT, EXPRESS, NOT_EXPRESS, OPENINGS, ORDER, PERSON, PERSON_WITH_JOB, TEAM};
use super::words::{
    CITIES, EVENT_KINDS, FIRST_NAMES, JOBS, LAST_NAMES, MATERIALS, NAME_SYLLABLES, TEAMS, THINGS,
};
use super::{Example, Kind};

/// Numbers that a sentence may spell out.
pub(super) const NUMBER_WORDS: [&str; 11] =
    ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Number of invented names per 100.
const INVENTED: usize = 12;

pub(super) fn draw(kind: Kind, random: &mut Random) -> Example {
    let (sentence, record, key) = match kind {
        Kind::Person => person(random),
        Kind::Order => order(random),
        Kind::Event => event(random),
        Kind::Team => team(random),
    };
    let prompt = format!("{}{}", random.pick(OPENINGS), capitalized(&sentence));
    Example { kind, prompt, record, key }
}

fn person(random: &mut Random) -> (String, String, String) {
    let name = full_name(random);
    let age = random.between(18, 99).to_string();
    let city = random.pick(CITIES);
    let job = random.chance(50).then(|| random.pick(JOBS));
    let templates = if job.is_some() { PERSON_WITH_JOB } else { PERSON };
    let sentence = fill(
        random.pick(templates),
        &[("name", &name), ("age", &age), ("city", city), ("job", job.unwrap_or_default())],
    );
    let mut record = format!("{{\"name\":{},\"age\":{age},\"city\":{}", quote(&name), quote(city));
    if let Some(job) = job {
        record.push_str(&format!(",\"job\":{}", quote(job)));
    }
    record.push('}');
    (sentence, record, name)
}

fn order(random: &mut Random) -> (String, String, String) {
    let item = item(random);
    let customer = full_name(random);
    let spelled = random.chance(25);
    let max = if spelled || random.chance(50) { 12 } else { 240 };
    let quantity = random.between(2, max);
    let written = if spelled { NUMBER_WORDS[quantity - 2].to_string() } else { quantity.to_string() };
    let express = random.chance(50);
    let mut sentence =
        fill(random.pick(ORDER), &[("item", &item), ("quantity", &written), ("customer", &customer)]);
    sentence.push_str(random.pick(if express { EXPRESS } else { NOT_EXPRESS }));
    let record = format!(
        "{{\"item\":{},\"quantity\":{quantity},\"customer\":{},\"express\":{express}}}",
        quote(&item),
        quote(&customer)
    );
    (sentence, record, customer)
}

fn event(random: &mut Random) -> (String, String, String) {
    let kind = random.pick(EVENT_KINDS);
    let city = random.pick(CITIES);
    let date =
        format!("20{:02}-{:02}-{:02}", random.between(25, 29), random.between(1, 12), random.between(1, 28));
    let time = format!("{:02}:{:02}", random.between(7, 22), random.below(4) * 15);
    let sentence =
        fill(random.pick(EVENT), &[("kind", kind), ("city", city), ("date", &date), ("time", &time)]);
    let record = format!(
        "{{\"kind\":{},\"city\":{},\"date\":{},\"time\":{}}}",
        quote(kind),
        quote(city),
        quote(&date),
        quote(&time)
    );
    let key = format!("{city} {date}");
    (sentence, record, key)
}

fn team(random: &mut Random) -> (String, String, String) {
    let team = random.pick(TEAMS);
    let count = random.between(2, 4);
    let mut members: Vec<String> = Vec::with_capacity(count);
    while members.len() < count {
        let name = first_name(random);
        if !members.contains(&name) {
            members.push(name);
        }
    }
    let (last, others) = members.split_last().expect("a team has at least two members");
    let prose = format!("{} and {last}", others.join(", "));
    let city = random.pick(CITIES);
    let sentence = fill(random.pick(TEAM), &[("team", team), ("members", &prose), ("city", city)]);
    let quoted: Vec<String> = members.iter().map(|name| quote(name)).collect();
    let record = format!("{{\"team\":{},\"members\":[{}]}}", quote(team), quoted.join(","));
    (sentence, record, members.join(" "))
}

pub(super) fn full_name(random: &mut Random) -> String {
    let first = first_name(random);
    let last = if random.chance(INVENTED) { invented(random) } else { random.pick(LAST_NAMES).to_string() };
    format!("{first} {last}")
}

pub(super) fn first_name(random: &mut Random) -> String {
    if random.chance(INVENTED) { invented(random) } else { random.pick(FIRST_NAMES).to_string() }
}

/// A material and a thing.
pub(super) fn item(random: &mut Random) -> String {
    format!("{} {}", random.pick(MATERIALS), random.pick(THINGS))
}

fn invented(random: &mut Random) -> String {
    let [start, middle, end] = NAME_SYLLABLES;
    let mut name = random.pick(start).to_string();
    if random.chance(60) {
        name.push_str(random.pick(middle));
    }
    name.push_str(random.pick(end));
    name
}

/// A sentence with its first letter in upper case.
pub(super) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Replaces `{field}` by its value.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(template.to_string(), |text, (field, value)| text.replace(&format!("{{{field}}}"), value))
}

/// A JSON string.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
