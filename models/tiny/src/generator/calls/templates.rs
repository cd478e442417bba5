//! The sentences that ask for a tool, and the sentences that need none. `{city}` and similar names
//! stand for arguments.

/// For `get_weather` without a day.
pub const WEATHER: &[&str] = &[
    "What is the weather like in {city}?",
    "Is it raining in {city}?",
    "How warm is it in {city}?",
    "Tell me the weather in {city}.",
    "Do I need an umbrella in {city}?",
    "I am going to {city}. What is the weather there?",
];

/// For `get_weather` with a day.
pub const WEATHER_ON_A_DAY: &[&str] = &[
    "What is the weather in {city} {day}?",
    "Will it rain in {city} {day}?",
    "How warm will it be {day} in {city}?",
    "Show me the weather for {city} {day}.",
    "I will be in {city} {day}. Do I need a coat?",
    "What will the weather be like {day} in {city}?",
];

/// For `calculate` with `plus`.
pub const PLUS: &[&str] = &["What is {a} plus {b}?", "How much is {a} and {b}?", "Add {a} and {b}."];

/// For `calculate` with `minus`.
pub const MINUS: &[&str] = &["What is {a} minus {b}?", "How much is {a} less {b}?", "Take {b} from {a}."];

/// For `calculate` with `times`.
pub const TIMES: &[&str] = &["What is {a} times {b}?", "How much is {a} by {b}?", "Multiply {a} by {b}."];

/// For `convert_currency`.
pub const CURRENCY: &[&str] = &[
    "Convert {amount} {from} to {to}.",
    "How many {to} are {amount} {from}?",
    "What are {amount} {from} worth in {to}?",
    "I have {amount} {from}. How much is that in {to}?",
    "How much {to} do I get for {amount} {from}?",
    "Change {amount} {from} into {to}, please.",
];

/// For `find_train` without a time.
pub const TRAIN: &[&str] = &[
    "Find a train from {from} to {to}.",
    "When does the next train leave {from} for {to}?",
    "Is there a train to {to} from {from}?",
    "How do I get from {from} to {to} by train?",
    "I am in {from} and need a train to {to}.",
];

/// For `find_train` with a time.
pub const TRAIN_AT: &[&str] = &[
    "Find a train from {from} to {to} at {time}.",
    "Which train leaves {from} for {to} at {time}?",
    "Is there a train to {to} from {from} at {time}?",
    "At {time} I want to go from {from} to {to} by train.",
    "I am in {from} and need a train to {to} at {time}.",
];

/// For `set_timer`.
pub const TIMER: &[&str] = &[
    "Set a timer of {minutes} minutes for the {name}.",
    "Start a timer for the {name}: {minutes} minutes.",
    "The {name} takes {minutes} minutes, so start a timer.",
    "I need a timer for the {name}, {minutes} minutes.",
    "Count {minutes} minutes for the {name}.",
];

/// For `set_alarm`, once.
pub const ALARM: &[&str] = &[
    "Wake me at {time}.",
    "Set an alarm for {time}.",
    "I have to get up at {time}.",
    "Let the alarm ring at {time}.",
    "I need an alarm at {time}, just once.",
];

/// For `set_alarm`, every day.
pub const ALARM_DAILY: &[&str] = &[
    "Wake me at {time} every day.",
    "Set a daily alarm for {time}.",
    "Every day I have to get up at {time}.",
    "Let the alarm ring at {time} each morning.",
    "I need an alarm at {time} on all days.",
];

/// For `add_reminder`.
pub const REMINDER: &[&str] = &[
    "Remind me to {text} at {time}.",
    "At {time}, remind me to {text}.",
    "Do not let me forget to {text} at {time}.",
    "I must not forget to {text} at {time}.",
    "Add a reminder for {time}: {text}.",
];

/// For `set_light`, on.
pub const LIGHT_ON: &[&str] = &[
    "Turn on the light in {room}.",
    "Switch the light in {room} on.",
    "It is too dark in {room}.",
    "I need light in {room}.",
];

/// For `set_light`, off.
pub const LIGHT_OFF: &[&str] = &[
    "Turn off the light in {room}.",
    "Switch the light in {room} off.",
    "It is too bright in {room}.",
    "No more light in {room}, please.",
];

/// For `play_music`, in order.
pub const MUSIC: &[&str] = &[
    "Play the songs of {artist}.",
    "I want to hear {artist}.",
    "Put on some music by {artist}.",
    "Play {artist} from the start.",
];

/// For `play_music`, in random order.
pub const MUSIC_SHUFFLED: &[&str] = &[
    "Shuffle the songs of {artist}.",
    "I want to hear {artist} in any order.",
    "Put on some music by {artist} and mix it.",
    "Play {artist} in random order.",
];

/// For `translate`.
pub const TRANSLATION: &[&str] = &[
    "Translate \"{text}\" into {language}.",
    "How do you say \"{text}\" in {language}?",
    "What is \"{text}\" in {language}?",
    "I want to say \"{text}\" in {language}.",
    "Tell me the {language} for \"{text}\".",
];

/// For `send_message`.
pub const MESSAGE: &[&str] = &[
    "Tell {to} that {text}.",
    "Let {to} know that {text}.",
    "Send {to} a message: {text}.",
    "Write to {to} that {text}.",
    "Send a message to {to} saying {text}.",
];

/// For `book_table`.
pub const TABLE: &[&str] = &[
    "Book a table for {people} at {time}, the name is {name}.",
    "Reserve a table at {time} for {people} people, name {name}.",
    "{name} needs a table for {people} at {time}.",
    "Get me a table for {people} at {time}. My name is {name}.",
    "At {time}, book {name} a table for {people}.",
];

/// Greetings.
pub const GREETINGS: &[&str] = &[
    "Hello, I am {name}.",
    "Good morning, {name} here.",
    "Hi, my name is {name}.",
    "Good evening from {name} in {city}.",
    "Hello from {city}!",
    "My name is {name} and I live in {city}.",
];

/// Thanks.
pub const THANKS: &[&str] = &[
    "Thank you for the {thing}.",
    "Thanks a lot, {name} liked the {thing}.",
    "Many thanks from {name}!",
    "That was all, thanks from {city}.",
    "Thank you, says {name}.",
];

/// Optional text before any sentence.
pub const OPENINGS: &[&str] = &["", "", "", "", "", "Please help me. ", "A question: ", "Next: ", "Hello! "];
