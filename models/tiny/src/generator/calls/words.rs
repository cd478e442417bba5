//! The words that only sentences about tools use.

/// Currencies.
pub const CURRENCIES: &[&str] = &[
    "AUD", "BRL", "CAD", "CHF", "CNY", "DKK", "EUR", "GBP", "INR", "JPY", "KES", "MXN", "NOK", "PLN", "USD",
];

/// Reasons for a timer.
pub const TIMED: &[&str] = &[
    "beans", "bread", "cake", "carrots", "chicken", "coffee", "cookies", "curry", "dough", "eggs", "fish",
    "laundry", "lentils", "meeting", "noodles", "oven", "pasta", "pie", "pizza", "potatoes", "rice", "roast",
    "soup", "stew", "tea", "workout",
];

/// Rooms.
pub const ROOMS: &[&str] = &[
    "attic",
    "bathroom",
    "bedroom",
    "cellar",
    "corridor",
    "garage",
    "garden",
    "guest room",
    "hall",
    "kitchen",
    "library",
    "living room",
    "lobby",
    "nursery",
    "office",
    "pantry",
    "shed",
    "staircase",
    "studio",
    "workshop",
];

/// Languages.
pub const LANGUAGES: &[&str] = &[
    "Arabic",
    "Czech",
    "Danish",
    "Dutch",
    "English",
    "Finnish",
    "French",
    "German",
    "Greek",
    "Hindi",
    "Italian",
    "Japanese",
    "Korean",
    "Norwegian",
    "Polish",
    "Portuguese",
    "Spanish",
    "Swahili",
    "Swedish",
    "Turkish",
];

/// Contents of reminders.
pub const TASKS: &[&str] = &[
    "call {name}",
    "meet {name}",
    "write to {name}",
    "pick up {first}",
    "pay {first}",
    "visit {first} in {city}",
    "pack for {city}",
    "buy {item}",
    "clean the {thing}",
    "sell the {thing}",
    "order {thing} for {first}",
    "water the plants",
    "lock the doors",
];

/// Contents of messages.
pub const MESSAGES: &[&str] = &[
    "I am in {city}",
    "I am late",
    "we meet at {time}",
    "the train leaves at {time}",
    "the {thing} are here",
    "the {item} are sold",
    "{first} is in {city}",
    "{first} and {name} are coming",
    "dinner is at {time}",
    "I need the {thing}",
    "there is a {event} in {city}",
];

/// Phrases to translate.
pub const PHRASES: &[&str] = &[
    "{item}",
    "{thing}",
    "good morning",
    "good night",
    "I am a {job}",
    "we need {thing}",
    "where is the {event}",
    "I live in {city}",
    "thank you for the {thing}",
    "the {thing} are {colour}",
];

/// Colors within the phrases.
pub const COLOURS: &[&str] = &["black", "blue", "brown", "green", "grey", "orange", "red", "white", "yellow"];
