//! The table of a constraint, states × token classes, as an SVG picture.

use std::collections::HashMap;
use std::fmt::Write;

use burn_dfa::cli::picture::{escape, page};
use burn_dfa::{CompiledConstraint, StateId, TokenId, Vocabulary};

const CELL: f64 = 24.0;
/// Height of a letter of a column label.
const LETTER: f64 = 6.0;
const SIDE: f64 = 90.0;
/// Maximum number of classes.
const MAX: usize = 200;
/// Tokens with the same next state in every state.
struct Class {
    next: Vec<StateId>,
    count: usize,
    first: TokenId,
}

/// The picture of `table`: a row for each state except the reserved states, a column for each class
/// that is legal in some state.
pub fn svg(table: &CompiledConstraint, vocabulary: &Vocabulary) -> String {
    let states: Vec<StateId> = (StateId::RESERVED..table.state_count() as u32).map(StateId).collect();
    let classes = classes(table, &states);
    let mut body = String::new();
    for (row, &state) in states.iter().enumerate() {
        let y = CELL * (row as f64 + 0.5);
        let start = if state == table.start() { "→ " } else { "" };
        let end = if table.is_accepting(state) { "◎" } else { "○" };
        let _never = writeln!(
            body,
            r#"<text text-anchor="end" x="-8" y="{:.1}">{start}{state} {end}</text>"#,
            y + 4.0
        );
    }
    for (column, class) in classes.iter().take(MAX).enumerate() {
        let x = CELL * (column as f64 + 0.5);
        let name = escape(&name(class, vocabulary));
        let _never = writeln!(body, r#"<text transform="translate({x:.1},-8) rotate(-60)">{name}</text>"#);
        for (row, &next) in class.next.iter().enumerate() {
            let (left, top) = (CELL * column as f64, CELL * row as f64);
            let _never = writeln!(
                body,
                r##"<rect x="{left:.0}" y="{top:.0}" width="{CELL}" height="{CELL}" fill="{}" stroke="#d0d7de" stroke-width="0.6"><title>{} on {name}: {}</title></rect>"##,
                colour(next, table),
                states[row],
                said(next)
            );
            if next != StateId::DEAD {
                let (x, y) = (left + CELL / 2.0, top + CELL / 2.0 + 4.0);
                let _never = writeln!(
                    body,
                    r#"<text text-anchor="middle" x="{x:.0}" y="{y:.0}">{}</text>"#,
                    short(next)
                );
            }
        }
    }
    let shown = &classes[..classes.len().min(MAX)];
    let longest = shown.iter().map(|class| name(class, vocabulary).chars().count()).max().unwrap_or(0);
    let head = LETTER * longest as f64 + 24.0;
    let (right, bottom) = (CELL * shown.len() as f64 + head / 2.0, CELL * states.len() as f64 + 30.0);
    if classes.len() > MAX {
        let y = bottom - 12.0;
        let _never = writeln!(body, r#"<text x="0" y="{y:.0}">{} more classes</text>"#, classes.len() - MAX);
    }
    let font = r##"font-family="ui-monospace, monospace" font-size="11" fill="#1b1f24""##;
    page(&format!("<g {font}>\n{body}</g>\n"), (-SIDE, -head, right, bottom))
}

/// The classes that some state allows, largest first.
fn classes(table: &CompiledConstraint, states: &[StateId]) -> Vec<Class> {
    let mut classes: HashMap<Vec<StateId>, Class> = HashMap::new();
    for id in (0..table.vocabulary_len() as u32).map(TokenId) {
        let next: Vec<StateId> = states.iter().map(|&state| table.next(state, id)).collect();
        if next.iter().any(|&next| next != StateId::DEAD) {
            let class = classes.entry(next.clone()).or_insert(Class { next, count: 0, first: id });
            class.count += 1;
        }
    }
    let mut classes: Vec<Class> = classes.into_values().collect();
    classes.sort_by_key(|class| (std::cmp::Reverse(class.count), class.first));
    classes
}

/// One of the tokens of a class, and how many more there are.
fn name(class: &Class, vocabulary: &Vocabulary) -> String {
    let first = match vocabulary.bytes(class.first) {
        Some(bytes) => bytes.escape_ascii().to_string(),
        None => "end".to_owned(),
    };
    let first: String = first.chars().take(14).collect();
    if class.count > 1 { format!("{first} +{}", class.count - 1) } else { first }
}

fn said(next: StateId) -> String {
    match next {
        StateId::DEAD => "not allowed".to_owned(),
        StateId::DONE => "done".to_owned(),
        _ => format!("to {next}"),
    }
}

fn short(next: StateId) -> String {
    if next == StateId::DONE { "end".to_owned() } else { next.to_string() }
}

/// A color for each next state, around the color wheel.
fn colour(next: StateId, table: &CompiledConstraint) -> String {
    match next {
        StateId::DEAD => "#fff".to_owned(),
        StateId::DONE => "#ddf4e4".to_owned(),
        _ => {
            let states = table.state_count().saturating_sub(StateId::RESERVED as usize).max(1);
            let hue = 360.0 * f64::from(next.0.saturating_sub(StateId::RESERVED)) / states as f64;
            format!("hsl({hue:.0} 70% 88%)")
        }
    }
}
