//! The training text of the model: short English sentences with their records, and sentences with
//! their tool calls.
//!
//! Everything is made from word lists, templates and a counter-based random source, so
//! [`Generator::example`] is a pure function of seed, split and index. The key of each example is
//! its main value (a full name, a city with a date, the members of a team, a tool with its
//! arguments). One key in ten is *held out* and never occurs in the training split, in any
//! sentence.
//!
//! ```
//! use burn_dfa_tiny::generator::{Generator, Split};
//!
//! let example = Generator::new(7).example(Split::HeldOut, 0);
//! assert!(example.record.starts_with('{'));
//! assert_eq!(example, Generator::new(7).example(Split::HeldOut, 0));
//! ```

mod calls;
mod random;
mod records;
mod templates;
mod words;

pub use calls::{
    AnswerExample, CALL_ARGUMENTS, CALL_END, CALL_START, Call, CallExample, GREETING, NO_TOOL, WELCOME,
};
pub use random::Random;

/// The subject of an example. Each kind has a schema and a regex of the same name.
///
/// ```
/// use burn_dfa_tiny::generator::Kind;
/// use burn_dfa_tiny::schema;
///
/// assert!(Kind::ALL.iter().all(|kind| schema(kind.name()).is_some()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Name, age, city and perhaps a job.
    Person,
    /// Item, quantity, customer and whether the delivery is express.
    Order,
    /// Kind, city, date and time.
    Event,
    /// A team and its members.
    Team,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Person, Kind::Order, Kind::Event, Kind::Team];

    /// The name of the kind, of its schema and of its regex.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Person => "person",
            Kind::Order => "order",
            Kind::Event => "event",
            Kind::Team => "team",
        }
    }
}

/// The training split or the held-out split.
///
/// ```
/// use burn_dfa_tiny::generator::{Generator, Split};
///
/// let example = Generator::new(1).example(Split::HeldOut, 3);
/// assert_eq!(Split::of(&example.key), Split::HeldOut);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// Examples for training: nine keys out of ten.
    Train,
    /// Examples for evaluation: all other keys.
    HeldOut,
}

impl Split {
    /// The split of an example with this key.
    pub fn of(key: &str) -> Self {
        if random::hash(key).is_multiple_of(10) { Split::HeldOut } else { Split::Train }
    }
}

/// A sentence and its record.
///
/// ```
/// use burn_dfa_tiny::generator::{Generator, Kind, Split};
///
/// let example = Generator::new(1).example_of(Kind::Team, Split::Train, 0);
/// let record: serde_json::Value = serde_json::from_str(&example.record)?;
/// assert!(record["members"].is_array());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The subject of the sentence.
    pub kind: Kind,
    /// The sentence, without the chat template.
    pub prompt: String,
    /// Compact JSON, properties in the order that the schema declares.
    pub record: String,
    /// The value that decides the split.
    pub key: String,
}

/// Makes examples from a seed.
///
/// ```
/// use burn_dfa_tiny::generator::{Generator, Split};
///
/// let generator = Generator::new(1);
/// let examples: Vec<_> = (0..3).map(|index| generator.example(Split::Train, index)).collect();
/// assert_eq!(examples[2], generator.example(Split::Train, 2)); // made without the two before it
/// ```
#[derive(Debug, Clone)]
pub struct Generator {
    seed: u64,
}

impl Generator {
    /// A generator; other seeds give other examples.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Example number `index` of a split. Kinds take turns at random.
    pub fn example(&self, split: Split, index: u64) -> Example {
        let mut random = Random::new(self.seed, index);
        let kind = Kind::ALL[random.below(Kind::ALL.len())];
        Self::draw(kind, split, &mut random)
    }

    /// Example number `index` of one kind.
    pub fn example_of(&self, kind: Kind, split: Split, index: u64) -> Example {
        Self::draw(kind, split, &mut Random::new(self.seed, index))
    }

    fn draw(kind: Kind, split: Split, random: &mut Random) -> Example {
        loop {
            let example = records::draw(kind, random);
            if Split::of(&example.key) == split {
                return example;
            }
        }
    }
}
