//! The functions, in sessions of this process.

use std::sync::LazyLock;

use burn_dfa_sql::{Functions, options::EngineArgs, session};
use burn_dfa_tiny::generator::{Generator, Kind, Split};
use clap::Parser;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use futures_util::StreamExt;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    engine: EngineArgs,
}

fn start(options: &[&str]) -> Functions {
    let args = Args::parse_from(["test"].iter().chain(options));
    args.engine.functions().expect("the embedded model loads")
}

/// One engine for all tests, as in a process.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| start(&["--rows", "8"]));

fn context() -> SessionContext {
    session::local(&FUNCTIONS, 1024, Some(2))
}

/// A result as one batch.
async fn run(context: &SessionContext, query: &str) -> Result<RecordBatch> {
    let batches = context.sql(query).await?.collect().await?;
    Ok(concat_batches(&batches[0].schema(), &batches)?)
}

/// The texts of a column; `None` for null.
fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    let text = |row| column.is_valid(row).then(|| array_value_to_string(column, row).unwrap());
    (0..column.len()).map(text).collect()
}

fn schema(name: &str) -> &'static str {
    burn_dfa_tiny::schema(name).unwrap().json
}

const NORA: &str = "Meet Nora Keller, a 34 year old baker from Lisbon.";

/// Registers rows as the table `t`, with the columns `id` and `text`.
fn register(context: &SessionContext, rows: Vec<Option<String>>) {
    let ids: ArrayRef =
        std::sync::Arc::new(StringArray::from_iter((0..rows.len()).map(|row| Some(format!("{row:04}")))));
    let texts: ArrayRef = std::sync::Arc::new(StringArray::from(rows));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("text", texts, true)]).unwrap();
    context.register_batch("t", batch).unwrap();
}

#[tokio::test]
async fn a_literal_schema_types_the_column() -> Result<()> {
    let context = context();
    let person = schema("person");
    let batch = run(&context, &format!("SELECT extract('{NORA}', '{person}') AS r")).await?;
    let DataType::Struct(fields) = batch.column(0).data_type() else { panic!("{}", batch.schema()) };
    let types: Vec<_> =
        fields.iter().map(|field| (field.name().as_str(), field.data_type().clone())).collect();
    let text = DataType::Utf8;
    assert_eq!(
        types,
        [("name", text.clone()), ("age", DataType::Int64), ("city", text.clone()), ("job", text)]
    );

    let fields = format!(
        "SELECT r['name'], r['age'] + 1 FROM (SELECT extract('{NORA}', '{person}') AS r) WHERE r['city'] = 'Lisbon'"
    );
    let batch = run(&context, &fields).await?;
    assert_eq!(texts(batch.column(0)), [Some("Nora Keller".into())]);
    assert_eq!(texts(batch.column(1)), [Some("35".into())]);
    Ok(())
}

#[tokio::test]
async fn rows_without_an_answer_are_null_with_a_reason() -> Result<()> {
    let context = context();
    let long = format!("{NORA} ").repeat(40);
    let endless = "x".repeat(20 << 20);
    let rows = [None, Some(""), Some(" \n"), Some(NORA), Some(&long), Some(&endless)];
    register(&context, rows.into_iter().map(|row| row.map(str::to_owned)).collect());
    let person = schema("person");
    let query = format!(
        "SELECT extract(text, '{person}') AS r, extract_reason(text, '{person}') AS why FROM t ORDER BY id"
    );
    let batch = run(&context, &query).await?;
    let answers = texts(batch.column(0));
    assert_eq!(
        answers.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, false, false, true, false, false]
    );
    assert!(answers[3].as_ref().unwrap().contains("Nora Keller"));
    let reasons = texts(batch.column(1));
    let expected = [
        Some("an argument is null"),
        Some("the text is empty"),
        Some("the text is empty"),
        None,
        Some("and a row has 256"),
        Some("and a row has 256"),
    ];
    for (reason, expected) in reasons.iter().zip(expected) {
        assert_eq!(reason.is_some(), expected.is_some(), "{reasons:?}");
        assert!(reason.as_deref().unwrap_or_default().contains(expected.unwrap_or_default()), "{reasons:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_budget_that_is_too_small_is_null_with_a_reason() -> Result<()> {
    let context = context();
    let schema = r#"{"type": "array", "items": {"enum": ["one", "two"]}, "minItems": 200}"#;
    let query = format!("SELECT extract('{NORA}', '{schema}'), extract_reason('{NORA}', '{schema}')");
    let batch = run(&context, &query).await?;
    assert_eq!(texts(batch.column(0)), [None]);
    let reason = texts(batch.column(1))[0].clone().unwrap();
    assert!(reason.contains("tokens are left for the answer, and the shortest takes"), "{reason}");
    Ok(())
}

/// The error is an error of planning, and contains the location that the library reports.
#[tokio::test]
async fn a_refused_literal_is_an_error_of_planning() {
    let context = context();
    register(&context, vec![]);
    let cases = [
        (
            r#"extract(text, '{"type": "object", "properties": {"a": {"type": "sting"}}}')"#,
            "/properties/a/type",
        ),
        (r#"extract_reason(text, '{"minLength": "1"}')"#, "/minLength"),
        (r#"extract(text, '{"type": "string", "enum": [1]}')"#, "extract: "),
        (r#"extract(text, '{"type": ')"#, "line 1"),
        (r#"matches(text, 'a(b')"#, "matches: "),
        (r#"matches(text, '[a-z]{3,1}', 'Write')"#, "matches: "),
        ("classify(text)", "at least one label"),
    ];
    for (call, expected) in cases {
        for query in [format!("SELECT {call} FROM t"), format!("SELECT id FROM t WHERE {call} IS NULL")] {
            let planned = match context.sql(&query).await {
                Ok(planned) => planned.create_physical_plan().await.map(drop),
                Err(error) => Err(error),
            };
            let error = planned.expect_err(call);
            let found = error.find_root();
            assert!(matches!(found, DataFusionError::Plan(_)), "{call}: {error:?}");
            assert!(error.to_string().contains(expected), "{call}: {error}");
        }
    }
}

#[tokio::test]
async fn schemas_of_rows_give_text() -> Result<()> {
    let context = context();
    let rows = [
        ("Meet Nora Keller, a 34 year old baker from Lisbon.", schema("person")),
        ("Please send three oak tables to Ada Lovell. It is urgent.", schema("order")),
        ("Please send three oak tables to Ada Lovell.", r#"{"type": "sting"}"#),
    ];
    let values = rows.map(|(text, schema)| format!("('{text}', '{schema}')")).join(", ");
    let query = format!("SELECT extract(a, b), extract_reason(a, b) FROM (VALUES {values}) AS v(a, b)");
    let batch = run(&context, &query).await?;
    assert_eq!(batch.column(0).data_type(), &DataType::Utf8);
    let (answers, reasons) = (texts(batch.column(0)), texts(batch.column(1)));
    assert_eq!(
        answers[0].as_deref(),
        Some(r#"{"name":"Nora Keller","age":34,"city":"Lisbon","job":"baker"}"#)
    );
    assert!(answers[1].as_ref().unwrap().starts_with(r#"{"item":"oak tables","quantity":3"#), "{answers:?}");
    assert_eq!((&answers[2], &reasons[0]), (&None, &None));
    assert!(reasons[2].as_ref().unwrap().contains("/type"), "{reasons:?}");
    Ok(())
}

#[tokio::test]
async fn white_space_is_an_argument() -> Result<()> {
    let context = context();
    let schema = r#"{"const": ["x", {"a": "y"}]}"#;
    let call = |style: &str| format!("extract('{NORA}', '{schema}'{style})");
    let styles = ["", ", 'compact'", ", 'spaced'", ", 'pretty'", ", NULL"].map(call).join(", ");
    let batch = run(&context, &format!("SELECT {styles}")).await?;
    let answers: Vec<_> = batch.columns().iter().map(|column| texts(column)[0].clone()).collect();
    let [compact, spaced, pretty] =
        [r#"["x",{"a":"y"}]"#, r#"["x", {"a": "y"}]"#, "[\n  \"x\",\n  {\n    \"a\": \"y\"\n  }\n]"]
            .map(|text| Some(text.to_owned()));
    // The embedded model was trained on compact JSON.
    assert_eq!(answers, [compact.clone(), compact, spaced.clone(), pretty, None]);

    let of_rows = format!(
        "SELECT {}, extract_reason('{NORA}', '{schema}', style) FROM (VALUES ('spaced'), ('wide')) AS v(style)",
        call(", style")
    );
    let batch = run(&context, &of_rows).await?;
    assert_eq!(texts(batch.column(0)), [spaced, None]);
    let reasons = texts(batch.column(1));
    let wrong = "\"wide\" is no style of white space; these are: compact, spaced, pretty, flexible";
    assert_eq!((&reasons[0], reasons[1].as_deref()), (&None, Some(wrong)));

    let error = context.sql(&format!("SELECT {}", call(", 'wide'"))).await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::Plan(_)), "{error:?}");
    assert!(error.to_string().contains(wrong), "{error}");
    Ok(())
}

#[tokio::test]
async fn labels_and_patterns_restrict_answers() -> Result<()> {
    let context = context();
    register(
        &context,
        (0..20).map(|index| Some(Generator::new(3).example(Split::HeldOut, index).prompt)).collect(),
    );
    let query = "SELECT count(*) FROM t WHERE classify(text, 'person', 'order', 'something else') IN ('person', 'order', 'something else')";
    assert_eq!(texts(run(&context, query).await?.column(0)), [Some("20".into())]);

    let query = "SELECT count(*) FROM t WHERE regexp_like(matches(text, '[A-Z]{2}-[0-9]{3}', 'A code:'), '^[A-Z]{2}-[0-9]{3}$')";
    assert_eq!(texts(run(&context, query).await?.column(0)), [Some("20".into())]);

    let query = "SELECT classify('a', 'x', NULL), classify_reason('a', 'x', NULL), matches('', '[0-9]', 'A digit:'), matches('', '[0-9]'), matches_reason('', '[0-9]')";
    let batch = run(&context, query).await?;
    let told: Vec<_> = batch.columns().iter().map(|column| texts(column)[0].clone()).collect();
    assert_eq!((&told[0], &told[3]), (&None, &None));
    assert_eq!(told[1].as_deref(), Some("an argument is null"));
    assert!(told[2].as_ref().is_some_and(|digit| digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit()));
    assert_eq!(told[4].as_deref(), Some("the text is empty"));

    let query = "SELECT classify(text, 'a', 'b') AS label, count(*) AS n FROM t GROUP BY label ORDER BY n DESC, label";
    let counts = texts(run(&context, query).await?.column(1));
    assert_eq!(counts.iter().flatten().map(|count| count.parse::<usize>().unwrap()).sum::<usize>(), 20);
    Ok(())
}

/// A row's answer depends only on the row: not on batches, partitions or neighboring rows.
#[tokio::test]
async fn answers_do_not_depend_on_batches() -> Result<()> {
    let examples: Vec<_> =
        (0..60).map(|index| Generator::new(4).example_of(Kind::Order, Split::HeldOut, index)).collect();
    let query = format!("SELECT id, extract(text, '{}') AS r FROM t ORDER BY id", schema("order"));
    let mut all = Vec::new();
    for (batch, partitions) in [(1024, 1), (7, 3), (1, 2)] {
        let context = session::local(&FUNCTIONS, batch, Some(partitions));
        register(&context, examples.iter().map(|example| Some(example.prompt.clone())).collect());
        all.push(texts(run(&context, &query).await?.column(1)));
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    // Most of them also match the sentences.
    let right = all[0].iter().zip(&examples).filter(|(answer, example)| {
        let record: serde_json::Value = serde_json::from_str(&example.record).unwrap();
        let customer = record["customer"].as_str().unwrap();
        answer.as_ref().unwrap().contains(&format!("customer: {customer}"))
    });
    assert!(right.count() > 50);
    Ok(())
}

/// Calls in every clause of a query that takes an expression.
#[tokio::test]
async fn calls_in_all_places() -> Result<()> {
    let context = context();
    register(
        &context,
        (0..12).map(|index| Some(Generator::new(7).example(Split::HeldOut, index).prompt)).collect(),
    );
    let call = "classify(text, 'a', 'b', 'c')";
    let all = texts(run(&context, &format!("SELECT {call} FROM t ORDER BY id")).await?.column(0));
    let mut sorted = all.clone();
    sorted.sort();
    let mut distinct = sorted.clone();
    distinct.dedup();
    let count = |label: &Option<String>| all.iter().filter(|found| *found == label).count().to_string();

    let by_call = run(&context, &format!("SELECT {call} AS label FROM t ORDER BY {call}, id")).await?;
    assert_eq!(texts(by_call.column(0)), sorted);
    let unnamed = run(&context, &format!("SELECT id FROM t ORDER BY {call}")).await?;
    assert_eq!((unnamed.num_columns(), unnamed.num_rows()), (1, 12));
    let groups = run(&context, &format!("SELECT {call}, count(*) FROM t GROUP BY {call} ORDER BY 1")).await?;
    assert_eq!(texts(groups.column(0)), distinct);
    assert_eq!(texts(groups.column(1)), distinct.iter().map(|label| Some(count(label))).collect::<Vec<_>>());
    let label = distinct[0].clone().unwrap();
    let aggregate = format!(
        "SELECT count(*) FILTER (WHERE {call} = '{label}'), count(DISTINCT {call}), max({call}) FROM t"
    );
    let aggregate = run(&context, &aggregate).await?;
    let told: Vec<_> = aggregate.columns().iter().map(|column| texts(column)[0].clone()).collect();
    assert_eq!(
        told,
        [Some(count(&distinct[0])), Some(distinct.len().to_string()), distinct.last().unwrap().clone()]
    );
    let window = run(&context, &format!("SELECT count(*) OVER (PARTITION BY {call}), {call} FROM t")).await?;
    for (counted, label) in texts(window.column(0)).iter().zip(texts(window.column(1))) {
        assert_eq!(counted.as_ref(), Some(&count(&label)));
    }
    let nested =
        run(&context, &format!("SELECT upper({call}) FROM t WHERE {call} IN (SELECT {call} FROM t)")).await?;
    assert_eq!(nested.num_rows(), 12);
    let case =
        run(&context, &format!("SELECT CASE WHEN id > '0005' THEN {call} END FROM t ORDER BY id")).await?;
    assert_eq!(texts(case.column(0))[6..], all[6..]);
    let joined = context
        .sql(&format!(
            "SELECT * FROM t AS t JOIN t AS u ON {}",
            call.replace("text", "t.text || u.text") + " = 'a'"
        ))
        .await?;
    let error = joined.collect().await.unwrap_err();
    assert!(error.to_string().contains("call it in a subquery"), "{error}");
    Ok(())
}

/// Dropping a result cancels its rows, and the next query starts immediately.
#[tokio::test]
async fn dropping_a_result_ends_its_work() -> Result<()> {
    let functions = start(&["--rows", "4"]);
    let context = session::local(&functions, 1024, Some(1));
    let rows = 5_000;
    register(
        &context,
        (0..rows).map(|index| Some(Generator::new(5).example(Split::HeldOut, index).prompt)).collect(),
    );
    let query = format!("SELECT extract(text, '{}') FROM t", schema("any"));
    let mut stream = context.sql(&query).await?.execute_stream().await?;
    let progress = functions.engine().unwrap().progress().clone();
    let begun = async {
        while progress.rows() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        batch = stream.next() => assert!(batch.is_some()),
        () = begun => {}
    }
    drop(stream);
    // The queue is first in, first out: without cancellation, this query would run after the
    // remaining rows.
    run(&context, &format!("SELECT extract('{NORA}', '{}')", schema("person"))).await?;
    assert!(progress.rows() < rows / 2, "{} rows", progress.rows());
    Ok(())
}

/// Errors of rows that are never read, or of calls that are not made, do not matter.
#[tokio::test]
async fn a_limit_of_a_query_ends_its_answers() -> Result<()> {
    let functions = start(&["--rows", "4"]);
    let context = session::local(&functions, 1024, Some(1));
    register(
        &context,
        (0..500).map(|index| Some(Generator::new(6).example(Split::HeldOut, index).prompt)).collect(),
    );
    let batch = run(&context, &format!("SELECT extract(text, '{}') FROM t LIMIT 5", schema("any"))).await?;
    assert_eq!(batch.num_rows(), 5);
    assert_eq!(functions.engine().unwrap().progress().rows(), 5);
    Ok(())
}
