//! The types of columns, and the columns of values.

use burn_dfa::{CompiledConstraint, Limits, Vocabulary};
use burn_dfa_sql::{Constraints, Shape, Sizes, Source, embedded_files};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::array_value_to_string;
use serde_json::{Value, json};

fn record<const N: usize>(properties: [(&str, Shape); N]) -> Shape {
    Shape::Record(properties.map(|(name, shape)| (name.to_owned(), shape)).into())
}

fn list(item: Shape) -> Shape {
    Shape::List(Box::new(item))
}

#[test]
fn schemas_become_shapes_of_columns() {
    use Shape::{Boolean, Integer, Json, Number, Text};
    let cases = [
        (json!({"type": "string", "maxLength": 3}), Text),
        (json!({"type": "integer"}), Integer),
        (json!({"type": "integer", "maximum": 1e30}), Json),
        (json!({"type": "integer", "format": "uint64"}), Json),
        (json!({"type": "number"}), Number),
        (json!({"type": ["boolean", "null"]}), Boolean),
        (json!({"type": ["boolean", "string"]}), Json),
        (json!({"type": "null"}), Json),
        (json!({}), Json),
        (json!(true), Json),
        (json!({"enum": ["a", "b", null]}), Text),
        (json!({"enum": [1, 2]}), Integer),
        (json!({"enum": [1, 2.5]}), Number),
        (json!({"enum": [1, "a"]}), Json),
        (json!({"const": true}), Boolean),
        (json!({"const": 18_446_744_073_709_551_615_u64}), Number),
        (json!({"type": "array", "items": {"type": "string"}}), list(Text)),
        (json!({"type": "array"}), Json),
        (json!({"type": "array", "items": {}}), list(Json)),
        (json!({"type": "array", "prefixItems": [{}], "items": {"type": "string"}}), Json),
        (json!({"type": "object"}), Json),
        (json!({"type": "object", "properties": {}}), Json),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {}}}),
            record([("b", Text), ("a", Json)]),
        ),
        (json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}), Json),
        (
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            record([("a", Json)]),
        ),
        (json!({"type": "object", "properties": {"a": {}}, "anyOf": [{}]}), Json),
        (json!({"type": "object", "properties": {"a": {}}, "patternProperties": {"b": {}}}), Json),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}), Json),
        (
            json!({
                "type": "object",
                "properties": {"one": {"$ref": "#/$defs/a"}, "none": {"$ref": "#/$defs/b"}},
                "$defs": {"a": {"type": "integer"}}
            }),
            record([("one", Integer), ("none", Json)]),
        ),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), Integer),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), Json),
    ];
    for (schema, shape) in cases {
        assert_eq!(Shape::of(&schema), shape, "{schema}");
    }
}

/// A recursive reference is followed up to a limit; deeper values are JSON text.
#[test]
fn a_recursive_schema_ends_in_json_text() {
    let schema = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "value": {"type": "integer"}}
    });
    let mut shape = &Shape::of(&schema);
    let mut depth = 0;
    while let Shape::Record(properties) = shape {
        (shape, depth) = (&properties[0].1, depth + 1);
    }
    assert_eq!((shape, depth > 2), (&Shape::Json, true));
}

#[test]
fn nulls_at_every_level() {
    let shape = record([("a", Shape::Integer), ("b", list(record([("c", Shape::Text)])))]);
    let values = [
        None,
        Some(json!(null)),
        Some(json!({})),
        Some(json!({"a": null, "b": null})),
        Some(json!({"a": 1, "b": []})),
        Some(json!({"b": [null, {"c": "x"}, {}]})),
    ];
    let column = shape.array(&values.iter().map(Option::as_ref).collect::<Vec<_>>()).unwrap();
    assert_eq!(column.data_type(), &shape.data_type());
    let told: Vec<String> =
        (0..column.len()).map(|row| array_value_to_string(&column, row).unwrap()).collect();
    let expected = ["", "", "{a: , b: }", "{a: , b: }", "{a: 1, b: []}", "{a: , b: [, {c: x}, {c: }]}"];
    assert_eq!(told, expected);
    assert!(Shape::Integer.array(&[Some(&json!("1"))]).unwrap_err().contains("does not fit"));
}

/// Every value that the constraint of a schema allows fits the column of its shape without loss.
#[test]
fn all_answers_fit_their_column() {
    let vocabulary = Vocabulary::from_files(&embedded_files()).unwrap();
    let constraints = Constraints::new(vocabulary.clone(), Limits::default(), Sizes::default().capacity);
    let schemas = [
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "integer", "minimum": -9_000_000_000_000_000_000_i64}),
        json!({"type": "array", "items": {"type": ["number", "null"]}, "maxItems": 4}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "c": {"enum": [1, 2.5]}}}),
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "maxLength": 6},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "boolean"}}}, "maxItems": 3},
                "more": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]}
            },
            "required": ["more"]
        }),
    ];
    for schema in schemas {
        let compiled = constraints.get(&Source::Schema(schema.to_string(), None)).unwrap();
        let values = samples(&compiled.constraint, &vocabulary, 200);
        assert!(values.len() > 100, "{schema}: {}", values.len());
        let column = compiled.shape.array(&values.iter().map(Some).collect::<Vec<_>>()).unwrap();
        for (row, value) in values.iter().enumerate() {
            let kept = back(&compiled.shape, &column, row);
            assert_eq!(kept, told(&compiled.shape, value), "{schema}");
        }
    }
}

fn samples(constraint: &CompiledConstraint, vocabulary: &Vocabulary, count: usize) -> Vec<Value> {
    let texts = constraint.samples(vocabulary, 5, 80).take(count).map(|tokens| vocabulary.decode(&tokens));
    texts.map(|text| serde_json::from_slice(&text).expect("answers are JSON")).collect()
}

/// The value of a row, without properties that are null.
fn back(shape: &Shape, column: &ArrayRef, row: usize) -> Value {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    if column.is_null(row) {
        return Value::Null;
    }
    match shape {
        Shape::Text => column.as_string::<i32>().value(row).into(),
        Shape::Integer => column.as_primitive::<Int64Type>().value(row).into(),
        Shape::Number => json!(column.as_primitive::<Float64Type>().value(row)),
        Shape::Boolean => column.as_boolean().value(row).into(),
        Shape::Json => serde_json::from_str(column.as_string::<i32>().value(row)).unwrap(),
        Shape::List(item) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|row| back(item, &items, row)).collect()
        }
        Shape::Record(properties) => {
            let columns = column.as_struct().columns().iter().zip(properties);
            let values = columns.map(|(column, (name, shape))| (name.clone(), back(shape, column, row)));
            Value::Object(values.filter(|(_, value)| !value.is_null()).collect())
        }
    }
}

/// A value in the form of its column: numbers become floats, and null properties are dropped.
fn told(shape: &Shape, value: &Value) -> Value {
    match (shape, value) {
        (Shape::Number, Value::Number(number)) => json!(number.as_f64()),
        (Shape::List(item), Value::Array(items)) => items.iter().map(|value| told(item, value)).collect(),
        (Shape::Record(properties), Value::Object(values)) => {
            let kept = properties
                .iter()
                .filter_map(|(name, shape)| Some((name.clone(), told(shape, values.get(name)?))));
            assert!(values.keys().all(|name| properties.iter().any(|(known, _)| known == name)), "{value}");
            Value::Object(kept.filter(|(_, value)| !value.is_null()).collect())
        }
        (_, other) => other.clone(),
    }
}

#[test]
fn records_become_structs_of_nullable_fields() {
    let shape = record([("a", list(Shape::Number))]);
    let DataType::Struct(fields) = shape.data_type() else { panic!("{:?}", shape.data_type()) };
    let DataType::List(item) = fields[0].data_type() else { panic!("{fields:?}") };
    assert_eq!(item.data_type(), &DataType::Float64);
    assert!(fields[0].is_nullable() && item.is_nullable());
}
