//! The program, on files.

use std::path::Path;
use std::process::Stdio;

use crate::process::{answer, failure, program, run};

const PEOPLE: &str =
    "id,text\n1,\"Meet Nora Keller, a 34 year old baker from Lisbon.\"\n2,\n3,\"Two\nlines\"\n";

fn schema() -> &'static str {
    burn_dfa_tiny::schema("person").unwrap().json
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_result_in_each_form() {
    let folder = tempfile::tempdir().unwrap();
    let people = file(folder.path(), "people.csv", PEOPLE);
    let query =
        format!("SELECT id, extract(text, '{}') AS r FROM '{people}' WHERE id < 3 ORDER BY id", schema());

    let table = answer(&[&query]);
    assert!(table.contains("| 1  | {name: Nora Keller, age: 34, city: Lisbon, job: baker} |"), "{table}");
    let lines = answer(&[&query, "--format", "json"]);
    let record = r#"{"name":"Nora Keller","age":34,"city":"Lisbon","job":"baker"}"#;
    assert_eq!(lines, format!("{{\"id\":1,\"r\":{record}}}\n{{\"id\":2,\"r\":null}}\n"));
    let values = answer(&[&query, "--format", "csv"]);
    assert_eq!(values, format!("id,r\n1,\"{}\"\n2,\n", record.replace('"', "\"\"")));

    let empty = format!("SELECT id FROM '{people}' WHERE id > 9");
    assert_eq!(answer(&[&empty, "--format", "csv"]), "id\n");
    assert_eq!(answer(&[&empty, "--format", "json"]), "");
    assert!(answer(&[&empty]).contains("| id |"));
    // A text of several lines stays one value, despite the cuts of the file.
    let texts = format!("SELECT text FROM '{people}' WHERE id = 3");
    assert_eq!(answer(&[&texts, "--format", "json"]), "{\"text\":\"Two\\nlines\"}\n");
    // SQL's EXTRACT still works.
    assert_eq!(answer(&["SELECT extract(year FROM DATE '2027-05-17') AS y", "--format", "csv"]), "y\n2027\n");
}

#[test]
fn a_printed_table_has_a_maximum_of_rows() {
    let output = run(&["SELECT * FROM generate_series(1, 100000)", "--max-rows", "7"]);
    assert!(output.status.success());
    let (table, note) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(table.lines().count(), 7 + 4, "{table}");
    assert!(note.contains("ended after 7 rows"), "{note}");
}

#[test]
fn errors_name_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let people = file(folder.path(), "people.csv", PEOPLE);
    let refused = failure(&[&format!("SELECT extract(text, '{{\"type\": \"sting\"}}') FROM '{people}'")]);
    assert!(refused.contains("extract: ") && refused.contains("/type"), "{refused}");
    assert!(failure(&["SELEC 1"]).contains("SELEC"));
    assert!(failure(&["SELECT * FROM 'missing.csv'"]).contains("missing.csv"));
    assert!(failure(&["SELECT 1", "--model", "/nowhere"]).contains("/nowhere"));
    assert!(failure(&["SELECT 1", "--device", "vulkan"]).contains("--features vulkan"));
    assert!(failure(&["SELECT 1", "--scheduler", "http://127.0.0.1:9"]).contains("127.0.0.1:9"));
    for usage in [
        &[][..],
        &["SELECT 1", "--rows", "0"],
        &["SELECT 1", "--device", "tpu"],
        &["executor", "--scheduler", "x"],
    ] {
        assert_eq!(run(usage).status.code(), Some(2), "{usage:?}");
    }
}

/// A reader that closes the pipe ends the query without an error.
#[test]
fn a_closed_pipe_ends_the_query() {
    let mut command = program(&["SELECT * FROM generate_series(1, 100000000)", "--format", "csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The same seed makes the same sentences in every form, and the model extracts most of their
/// content.
#[test]
fn generated_data_is_the_same_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let mut tables = Vec::new();
    for form in ["csv", "parquet", "json"] {
        let into = folder.path().join(form);
        let into = into.to_str().unwrap();
        let told = answer(&["generate", into, "--form", form, "--count", "120", "--seed", "9"]);
        assert_eq!(told.lines().count(), 4, "{told}");
        let rows: usize =
            told.lines().map(|line| line.rsplit(' ').nth(1).unwrap().parse::<usize>().unwrap()).sum();
        assert_eq!(rows, 120);
        let orders = format!(
            "SELECT text, item, quantity, customer, express FROM '{into}/orders.{form}' ORDER BY text"
        );
        tables.push(answer(&[&orders, "--format", "json"]));
    }
    assert_eq!(tables[0], tables[1]);
    assert_eq!(tables[0], tables[2]);

    let schema = burn_dfa_tiny::schema("order").unwrap().json;
    let path = folder.path().join("parquet/orders.parquet");
    let accuracy = format!(
        "SELECT count(*) FILTER (WHERE r['item'] = item AND r['quantity'] = quantity AND r['customer'] = customer \
         AND r['express'] = express) * 10 > count(*) * 8 AS good, count(*) > 15 AS many \
         FROM (SELECT *, extract(text, '{schema}') AS r FROM '{}')",
        path.display()
    );
    assert_eq!(answer(&[&accuracy, "--format", "csv"]), "good,many\ntrue,true\n");
}
