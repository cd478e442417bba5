//! Tests with clients by other authors.

use std::path::Path;
use std::process::Command;

use super::client::start;
use burn_dfa_testing::python;

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn the_client_of_openai() {
    let Some(mut python) = python::with("openai") else { return };
    let server = start(&["--api-key", "secret"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/openai_client.py");
    let said = succeeds(python.arg(script).args([&format!("http://{}", server.address), "secret"]));
    assert!(said.ends_with("all is well\n"), "{said}");
}

/// Random requests by the server's own description. None is answered with 5xx, with an undescribed
/// status or body, or accepted against its schema.
#[test]
fn the_server_matches_its_description() {
    let Some(mut python) = python::with("schemathesis") else { return };
    let server = start(&["--api-key", "secret", "--compile-deadline", "5"]);
    // The reverse cannot be required: the schema accepts invalid regexes.
    let options = "--phases coverage,fuzzing --max-examples 30 --generation-deterministic --request-timeout 60 \
                   --exclude-checks positive_data_acceptance --no-color";
    let folder = std::env::temp_dir().join(format!("burn-dfa-schemathesis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for what it leaves behind");
    let said = succeeds(
        python
            .current_dir(&folder)
            .args(["-m", "schemathesis.cli", "run", &format!("http://{}/openapi.json", server.address)])
            .args(["-H", "Authorization: Bearer secret"])
            .args(options.split_whitespace()),
    );
    assert!(said.contains("Selected: 11/11"), "{said}");
    std::fs::remove_dir_all(folder).expect("it is there");
    assert_eq!(server.get("/health").status, 200);
}
