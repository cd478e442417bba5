//! The tools of the model.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The tools. Names, documentation and fields are what the model is told of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// What the weather is or will be like.
    GetWeather {
        /// Where.
        city: String,
        /// When.
        #[schemars(with = "Day")]
        #[serde(default)]
        day: Option<Day>,
    },
    /// Calculates with two whole numbers.
    Calculate {
        /// The first number.
        a: i32,
        /// What to do with them.
        op: Operation,
        /// The second number.
        b: i32,
    },
    /// Starts a timer.
    SetTimer {
        /// How long.
        minutes: u32,
        /// For what.
        name: String,
    },
}

/// A day.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Day {
    Today,
    Tomorrow,
}

/// What to do with two numbers.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Operation {
    Plus,
    Minus,
    Times,
}

impl Action {
    /// Runs the action, and returns its result. No data leaves the machine: the weather is
    /// invented.
    pub fn run(self) -> Value {
        match self {
            Self::GetWeather { city, day } => {
                let rain = city.len() % 2 == 0;
                let later = matches!(day, Some(Day::Tomorrow));
                json!({ "sky": if rain == later { "sunny" } else { "rainy" }, "degrees": 12 + city.len() })
            }
            Self::Calculate { a, op, b } => {
                let result = match op {
                    Operation::Plus => a.checked_add(b),
                    Operation::Minus => a.checked_sub(b),
                    Operation::Times => a.checked_mul(b),
                };
                result.map_or_else(|| failed("it is too large"), |result| json!({ "result": result }))
            }
            Self::SetTimer { minutes: 0, .. } => failed("it takes no time"),
            Self::SetTimer { minutes, name } => {
                println!("       a timer of {minutes} min is running: {name}");
                json!({ "done": true })
            }
        }
    }
}

/// The result of a failed function.
fn failed(reason: &str) -> Value {
    json!({ "error": reason })
}
