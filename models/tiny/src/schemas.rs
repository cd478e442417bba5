//! The JSON schema and the regex of each kind of record.

/// A JSON schema and, if there is one, the regex that matches the same records in compact form.
///
/// ```
/// use burn_dfa::Constraint;
///
/// let person = burn_dfa_tiny::schema("person").unwrap();
/// Constraint::json_schema_from_str(person.json)?;
/// Constraint::regex(person.regex.unwrap())?;
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The name, for instance `person`.
    pub name: &'static str,
    /// The JSON schema.
    pub json: &'static str,
    /// A regex for the whole record: properties in declared order, no white space, no escapes.
    pub regex: Option<&'static str>,
}

/// All schemas: one per [`Kind`](crate::generator::Kind) and `any`, which admits each of them.
pub fn schemas() -> &'static [Schema] {
    &SCHEMAS
}

/// The schema of this name.
pub fn schema(name: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.name == name)
}

const SCHEMAS: [Schema; 5] = [
    Schema {
        name: "person",
        json: include_str!("../schemas/person.json"),
        regex: Some(include_str!("../schemas/person.regex").trim_ascii_end()),
    },
    Schema {
        name: "order",
        json: include_str!("../schemas/order.json"),
        regex: Some(include_str!("../schemas/order.regex").trim_ascii_end()),
    },
    Schema {
        name: "event",
        json: include_str!("../schemas/event.json"),
        regex: Some(include_str!("../schemas/event.regex").trim_ascii_end()),
    },
    Schema {
        name: "team",
        json: include_str!("../schemas/team.json"),
        regex: Some(include_str!("../schemas/team.regex").trim_ascii_end()),
    },
    Schema { name: "any", json: include_str!("../schemas/any.json"), regex: None },
];
