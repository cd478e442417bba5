//! Programs of others against the server.

use std::path::Path;
use std::process::Command;

use super::client::start;
use super::python;

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

/// Random requests by the server's own description of itself: none is answered by 5xx, by a status or a body that the
/// description lacks, or accepted though its schema forbids it.
#[test]
fn the_server_is_as_it_describes_itself() {
    let Some(mut python) = python::with("schemathesis") else { return };
    let server = start(&["--api-key", "secret", "--compile-deadline", "5"]);
    // That all which the schema allows is accepted cannot be asked for: the schema does not say what a regex is.
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
