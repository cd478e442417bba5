//! The sentences. `{name}` and similar names stand for the values of the record.

/// Sentences about a person without a job.
pub const PERSON: &[&str] = &[
    "{name} is {age} years old and lives in {city}.",
    "{name}, {age}, lives in {city}.",
    "{name}, aged {age}, is from {city}.",
    "At {age}, {name} moved to {city}.",
    "In {city} lives {name}, who is {age}.",
    "{name} of {city} turned {age} today.",
    "My neighbour in {city} is called {name} and is {age}.",
    "The new member is {name} from {city}, {age} years old.",
    "{age} years old, {name} has a house in {city}.",
    "Meet {name}: {age} years old, from {city}.",
    "{city} is home to {name}, now {age} years old.",
    "A guest from {city}, {name}, has just turned {age}.",
];

/// Sentences about a person with a job.
pub const PERSON_WITH_JOB: &[&str] = &[
    "{name} is a {age} year old {job} from {city}.",
    "{name}, {age}, works as a {job} in {city}.",
    "The {job} {name} is {age} and lives in {city}.",
    "In {city}, {name} works as a {job} at the age of {age}.",
    "{name} lives in {city}, is {age} years old and earns a living as a {job}.",
    "At {age}, {name} became a {job} in {city}.",
    "A {job} from {city}, {name} is {age} years old.",
    "We hired {name}, {age}, as a {job} in {city}.",
    "{city} has a new {job}: {name}, aged {age}.",
    "{name} from {city} is {age} and a {job} by trade.",
    "The {job} in {city} is called {name} and is {age}.",
    "{age} years old, {name} is still a {job} in {city}.",
];

/// Sentences about an order.
pub const ORDER: &[&str] = &[
    "{customer} ordered {quantity} {item}.",
    "{customer} would like to buy {quantity} {item}.",
    "Please send {quantity} {item} to {customer}.",
    "Order for {customer}: {quantity} {item}.",
    "{quantity} {item} for {customer}, please.",
    "We need {quantity} {item}; the customer is {customer}.",
    "{customer} asked for {quantity} {item} this morning.",
    "A parcel of {quantity} {item} goes to {customer}.",
    "Put {customer} down for {quantity} {item}.",
    "{quantity} {item} were ordered by {customer}.",
    "The customer {customer} takes {quantity} {item}.",
    "Sold to {customer}: {quantity} {item}.",
];

/// Text after the sentence of an express order.
pub const EXPRESS: &[&str] = &[
    " Express delivery.",
    " It is urgent.",
    " Send it by express.",
    " As fast as possible, please.",
    " This is a rush order.",
];

/// Optional text after the sentence of an order without express delivery.
pub const NOT_EXPRESS: &[&str] =
    &["", "", " There is no hurry.", " Standard delivery.", " Any time is fine."];

/// Sentences about an event.
pub const EVENT: &[&str] = &[
    "The {kind} in {city} starts at {time} on {date}.",
    "There is a {kind} in {city} on {date} at {time}.",
    "On {date} at {time}, {city} hosts a {kind}.",
    "{city} invites you to a {kind} on {date} at {time}.",
    "A {kind} takes place at {time} on {date} in {city}.",
    "Join us for the {kind} on {date} in {city}, {time} sharp.",
    "Do not miss the {kind}: {city}, {date}, {time}.",
    "At {time} on {date} the {kind} opens in {city}.",
    "The date of the {city} {kind} is {date}; doors open at {time}.",
    "We planned the {kind} for {date}, {time}, in {city}.",
    "In {city} the {kind} will begin on {date} at {time}.",
    "{date}, {time}: {kind} in {city}.",
];

/// Sentences about a team. `{members}` is a list in prose; `{city}` is not part of the record.
pub const TEAM: &[&str] = &[
    "{members} play for the {team}.",
    "The {team} are {members}.",
    "This year the {team} field {members}.",
    "{members} form the {team}.",
    "The members of the {team} are {members}.",
    "On the {team} we have {members}.",
    "{members} joined the {team} in {city}.",
    "The {team} from {city} sent {members}.",
    "In {city}, {members} won the cup for the {team}.",
    "Playing for the {team} today: {members}.",
];

/// Optional text before any sentence.
pub const OPENINGS: &[&str] = &["", "", "", "", "", "Note: ", "News: ", "For the file: ", "Hello! "];
