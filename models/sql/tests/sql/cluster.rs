//! A scheduler and two executors, as processes on this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::process::{Process, answer, failure, program, sorted, status, until};

/// A cluster of two executors. Each test has a separate cluster, since it ends parts of it.
struct Cluster {
    address: String,
    executors: [Process; 2],
    _scheduler: Process,
}

impl Cluster {
    fn start() -> Self {
        let options = ["scheduler", "--port", "0", "--executor-timeout", "8", "--executors", "2"];
        let scheduler = Process::start(&mut program(&options));
        let address = scheduler.line("listening on http://");
        let options =
            ["executor", "--scheduler", &address, "--threads", "1", "--rows", "8", "--heartbeat", "1"];
        let executors = [(); 2].map(|()| Process::start(&mut program(&options)));
        until("two executors", || status(&address, "/readyz") == Some(200));
        Self { address, executors, _scheduler: scheduler }
    }

    fn query(&self, text: &str) -> Vec<String> {
        ["--scheduler", &format!("http://{}", self.address), "--format", "json", "--partitions", "8", text]
            .map(str::to_owned)
            .into()
    }

    fn answer(&self, text: &str) -> Vec<String> {
        let args = self.query(text);
        sorted(&answer(&args.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

/// Writes sentences to files of a folder, and returns a query of their orders.
fn orders(folder: &Path, count: usize) -> String {
    let folder = folder.to_str().unwrap();
    answer(&["generate", folder, "--form", "json", "--count", &count.to_string()]);
    format!("SELECT text, extract(text, '{}') AS r FROM '{folder}/orders.json'", schema())
}

fn schema() -> &'static str {
    burn_dfa_tiny::schema("order").unwrap().json
}

#[test]
fn a_cluster_answers_as_one_process_does() {
    let folder = tempfile::tempdir().unwrap();
    let query = orders(folder.path(), 1600);
    let cluster = Cluster::start();
    let there = cluster.answer(&query);
    let here = sorted(&answer(&[&query, "--format", "json"]));
    assert!(here.len() > 300 && here.iter().all(|line| line.contains(r#""r":{"item":""#)), "{here:#?}");
    assert_eq!(there, here);
    // Both executors took part.
    let used = cluster.executors.each_ref().map(Process::used);
    assert!(used.iter().all(|used| *used > Duration::from_millis(200)), "{used:?}");

    let table = format!("'{}/orders.json'", folder.path().display());
    let queries = [
        format!("SELECT extract_reason(text, '{}') AS why, count(*) AS n FROM {table} GROUP BY why", schema()),
        format!("SELECT classify(text, 'order', 'person') AS c, count(*) AS n FROM {table} WHERE express GROUP BY c"),
        format!("SELECT text, matches(text, '[a-z]{{2,8}}', 'A word:') AS m FROM {table} ORDER BY text LIMIT 30"),
        format!("SELECT text, r['customer'] AS c FROM ({query}) AS q WHERE r['express'] = express AND r['quantity'] > 100")
            .replace("SELECT text, extract", "SELECT text, express, extract"),
    ];
    for query in queries {
        let here = sorted(&answer(&[&query, "--format", "json"]));
        assert!(!here.is_empty(), "{query}");
        assert_eq!(cluster.answer(&query), here, "{query}");
    }

    let refused = cluster.query(&format!("SELECT extract(text, '{{\"type\": \"sting\"}}') FROM {table}"));
    let refused = failure(&refused.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(refused.contains("extract: ") && refused.contains("/type"), "{refused}");
}

#[test]
fn an_executor_that_is_killed_costs_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let query = orders(folder.path(), 6000);
    let mut cluster = Cluster::start();
    let args = cluster.query(&query);
    let command = &mut program(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let before = cluster.executors[0].used();
    let mut asked = Process::start(command.stdout(Stdio::piped()));
    // The executor has finished some of its rows, but not all.
    until("the executor works", || cluster.executors[0].used() > before + Duration::from_millis(700));
    cluster.executors[0].kill();
    assert!(asked.is_running(), "the query ended before the executor did: it takes more rows");
    let output = asked.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let there = sorted(&String::from_utf8(output.stdout).unwrap());
    let here = sorted(&answer(&[&query, "--format", "json"]));
    assert_eq!(there.len(), here.len());
    assert_eq!(there, here);
}
