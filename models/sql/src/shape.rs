//! The column of the answers under a JSON schema.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use serde_json::{Map, Value};

/// Greatest number of references followed on the path to one part of a schema.
const REFERENCES: usize = 32;

/// Keywords that add undeclared properties to an object.
const COMBINING: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "unevaluatedProperties",
    "$dynamicRef",
];

/// The type of a column of JSON values, read from their schema.
///
/// | schema | column |
/// |---|---|
/// | an object that declares its properties and allows no others | `Struct`, the fields in the order of `properties` |
/// | an array with one schema for its items | `List` |
/// | `string`, or an enumeration of strings | `Utf8` |
/// | `integer` within 64 bits, `number`, `boolean`, or an enumeration of one of them | `Int64`, `Float64`, `Boolean` |
/// | any of these or null | the same; null is `NULL` |
/// | anything else | `Utf8`, the value as JSON text |
///
/// ```
/// use burn_dfa_sql::Shape;
/// use datafusion::arrow::datatypes::DataType;
/// use serde_json::json;
///
/// let shape = Shape::of(&json!({
///     "type": "object",
///     "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "more": {}}
/// }));
/// let DataType::Struct(fields) = shape.data_type() else { panic!() };
/// let types: Vec<_> = fields.iter().map(|field| field.data_type().clone()).collect();
/// assert_eq!(types, [DataType::Utf8, DataType::Int64, DataType::Utf8]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// An integer of 64 bits.
    Integer,
    /// A number, as a float of 64 bits.
    Number,
    /// True or false.
    Boolean,
    /// An array.
    List(Box<Shape>),
    /// An object with these properties.
    Record(Vec<(String, Shape)>),
    /// Any value, as JSON text.
    Json,
}

impl Shape {
    /// The shape of a schema's values. An object without `additionalProperties` has only its
    /// declared properties.
    pub fn of(schema: &Value) -> Self {
        of(schema, schema, REFERENCES)
    }

    /// The type of the column. All parts are nullable, since a row may lack an answer.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Text | Self::Json => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::List(item) => DataType::List(Arc::new(item.item_field())),
            Self::Record(properties) => DataType::Struct(fields(properties)),
        }
    }

    fn item_field(&self) -> Field {
        Field::new_list_field(self.data_type(), true)
    }

    /// A column of values, `None` and JSON's null as null.
    ///
    /// # Errors
    /// A message, if a value does not have this shape.
    pub fn array(&self, values: &[Option<&Value>]) -> Result<ArrayRef, String> {
        // JSON's null becomes SQL's null.
        let values: Vec<Option<&Value>> =
            values.iter().map(|value| value.filter(|value| !value.is_null())).collect();
        Ok(match self {
            Self::Text => Arc::new(StringArray::from_iter(self.each(&values, Value::as_str)?)),
            Self::Integer => Arc::new(Int64Array::from_iter(self.each(&values, Value::as_i64)?)),
            Self::Number => Arc::new(Float64Array::from_iter(self.each(&values, Value::as_f64)?)),
            Self::Boolean => Arc::new(BooleanArray::from_iter(self.each(&values, Value::as_bool)?)),
            Self::Json => {
                Arc::new(StringArray::from_iter(values.iter().map(|value| value.map(Value::to_string))))
            }
            Self::List(item) => {
                let lists = self.each(&values, Value::as_array)?;
                let items: Vec<Option<&Value>> =
                    lists.iter().copied().flatten().flatten().map(Some).collect();
                let lengths = lists.iter().map(|list| list.map_or(0, Vec::len));
                Arc::new(ListArray::new(
                    Arc::new(item.item_field()),
                    OffsetBuffer::from_lengths(lengths),
                    item.array(&items)?,
                    Some(validity(&lists)),
                ))
            }
            Self::Record(properties) => {
                let records = self.each(&values, Value::as_object)?;
                let columns = properties.iter().map(|(name, shape)| {
                    let values: Vec<_> =
                        records.iter().map(|record| record.and_then(|record| record.get(name))).collect();
                    shape.array(&values)
                });
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::new(fields(properties), columns, Some(validity(&records))))
            }
        })
    }

    /// Reads each value that is not null.
    fn each<'a, T>(
        &self,
        values: &[Option<&'a Value>],
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Vec<Option<T>>, String> {
        let read = |value: &'a Value| {
            read(value).ok_or_else(|| format!("{value} does not fit a column of {}", self.data_type()))
        };
        values.iter().map(|value| value.map(&read).transpose()).collect()
    }
}

fn fields(properties: &[(String, Shape)]) -> Fields {
    properties.iter().map(|(name, shape)| Field::new(name, shape.data_type(), true)).collect()
}

fn validity<T>(values: &[Option<T>]) -> NullBuffer {
    values.iter().map(Option::is_some).collect()
}

/// The shape of a part of the schema `root`.
fn of(root: &Value, part: &Value, references: usize) -> Shape {
    let Some(part) = part.as_object() else { return Shape::Json };
    if let Some(reference) = part.get("$ref") {
        let target = reference.as_str().and_then(|text| root.pointer(text.strip_prefix('#')?));
        let lonely = part.keys().all(|name| matches!(name.as_str(), "$ref" | "title" | "description"));
        return match target {
            Some(target) if lonely && references > 0 => of(root, target, references - 1),
            _ => Shape::Json,
        };
    }
    if let Some(values) = part.get("enum").and_then(Value::as_array) {
        return of_values(values);
    }
    if let Some(value) = part.get("const") {
        return of_values(std::slice::from_ref(value));
    }
    match part.get("type") {
        Some(Value::String(name)) => of_type(root, part, name, references),
        Some(Value::Array(names)) => {
            let mut others = names.iter().filter(|name| *name != "null");
            match (others.next().and_then(Value::as_str), others.next()) {
                (Some(name), None) => of_type(root, part, name, references),
                _ => Shape::Json,
            }
        }
        _ => of_alternatives(root, part, references),
    }
}

/// The shape of a part, or of null.
fn of_alternatives(root: &Value, part: &Map<String, Value>, references: usize) -> Shape {
    let alternatives = part.get("anyOf").or_else(|| part.get("oneOf")).and_then(Value::as_array);
    let others =
        part.keys().filter(|name| !matches!(name.as_str(), "anyOf" | "oneOf" | "title" | "description"));
    let (Some(alternatives), 0) = (alternatives, others.filter(|name| !name.starts_with('$')).count()) else {
        return Shape::Json;
    };
    let is_null = |part: &&Value| part.get("type").is_some_and(|name| name == "null");
    match &alternatives.iter().filter(|part| !is_null(part)).collect::<Vec<_>>()[..] {
        [part] if references > 0 => of(root, part, references - 1),
        _ => Shape::Json,
    }
}

fn of_type(root: &Value, part: &Map<String, Value>, name: &str, references: usize) -> Shape {
    match name {
        "string" => Shape::Text,
        "integer" if is_within_64_bits(part) => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        "array" if part.contains_key("prefixItems") => Shape::Json,
        "array" => match part.get("items") {
            Some(items @ Value::Object(_)) if references > 0 => {
                Shape::List(Box::new(of(root, items, references - 1)))
            }
            _ => Shape::Json,
        },
        "object" => of_object(root, part, references),
        _ => Shape::Json,
    }
}

fn of_object(root: &Value, part: &Map<String, Value>, references: usize) -> Shape {
    let is_closed = part.get("additionalProperties").is_none_or(|others| others == false);
    let properties =
        part.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
    match properties {
        Some(properties)
            if is_closed
                && references > 0
                && COMBINING.iter().all(|keyword| !part.contains_key(*keyword)) =>
        {
            let shapes = properties.iter().map(|(name, part)| (name.clone(), of(root, part, references - 1)));
            Shape::Record(shapes.collect())
        }
        _ => Shape::Json,
    }
}

/// Whether the integers of a schema fit 64 bits; without bounds, the number of digits is limited.
fn is_within_64_bits(part: &Map<String, Value>) -> bool {
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let mut bounds = bounds.iter().filter_map(|keyword| part.get(*keyword));
    bounds.all(|bound| bound.is_boolean() || bound.as_f64().is_some_and(|bound| bound.abs() < 9e18))
        && part.get("format").is_none_or(|format| format != "uint64")
}

/// The shape of an enumeration.
fn of_values(values: &[Value]) -> Shape {
    let mut values = values.iter().filter(|value| !value.is_null()).peekable();
    let of_value = |value: &Value| match value {
        Value::String(_) => Shape::Text,
        Value::Bool(_) => Shape::Boolean,
        Value::Number(number) if number.is_i64() => Shape::Integer,
        Value::Number(_) => Shape::Number,
        _ => Shape::Json,
    };
    let Some(first) = values.peek().map(|value| of_value(value)) else { return Shape::Json };
    values.map(of_value).fold(first, |one, other| match (one, other) {
        (one, other) if one == other => one,
        (Shape::Integer | Shape::Number, Shape::Integer | Shape::Number) => Shape::Number,
        _ => Shape::Json,
    })
}
