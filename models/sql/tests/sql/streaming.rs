//! Long tables, in constant memory.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use crate::process::{Process, program, until};

/// Peak memory of a query over `rows` rows, in KiB.
fn peak_memory(folder: &Path, rows: usize) -> u64 {
    let path = folder.join(format!("{rows}.json"));
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    for row in 0..rows {
        writeln!(file, r#"{{"id":{row},"text":"Meet number {row}, a baker."}}"#).unwrap();
    }
    file.into_inner().unwrap();
    let schema = burn_dfa_tiny::schema("person").unwrap().json;
    let query = format!(
        "SELECT id, text, extract_reason(CASE WHEN id % 1000 = 0 THEN NULL ELSE text END, '{schema}') AS why FROM '{}'",
        path.display()
    );
    let result = folder.join(format!("{rows}.csv"));
    let mut command = program(&[&query, "--format", "csv", "--partitions", "2"]);
    let mut process = Process::start(command.stdout(Stdio::from(std::fs::File::create(&result).unwrap())));
    let mut max = 0;
    until("the query ends", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.map(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        max = max.max(peak.unwrap_or_default());
        !process.is_running()
    });
    let told = std::fs::read_to_string(&result).unwrap();
    assert_eq!(told.lines().count(), rows + 1);
    assert_eq!(
        told.lines().filter(|line| line.ends_with("an argument is null")).count(),
        rows.div_ceil(1000)
    );
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(result).unwrap();
    max
}

#[test]
fn a_million_rows_take_no_more_memory_than_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let (few, many) = (peak_memory(folder.path(), 50_000), peak_memory(folder.path(), 1_000_000));
    println!("50,000 rows: {few} KiB; 1,000,000 rows: {many} KiB");
    // The longer table alone has 40 MiB.
    assert!(many < few + (20 << 10), "{few} KiB, {many} KiB");
}
