//! Attacks in processes of their own, so that what one takes can be told, and a crash of it too.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use burn_dfa::{Error, Limits, Result};

/// Names the attack to a child.
const ATTACK: &str = "BURN_DFA_ATTACK";
/// Begins the line in which a child reports.
const REPORT: &str = "attack:";
/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// An attack: what it is called, what must come of it, and how it is made.
pub struct Attack {
    pub name: &'static str,
    pub end: End,
    pub run: fn(&mut Gauge) -> Result<()>,
}

/// How an attack must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is harmless.
    Fine,
    Limit,
    Pattern,
    Schema,
    Grammar,
    Tag,
    Request,
    Vocabulary,
    Unsatisfiable,
    Budget,
    Input,
    /// With any error or none.
    Any,
}

impl End {
    fn of(result: &Result<()>) -> Self {
        type Is = fn(&Error) -> bool;
        let kinds: [(Is, Self); 10] = [
            (Error::is_limit, Self::Limit),
            (Error::is_pattern, Self::Pattern),
            (Error::is_schema, Self::Schema),
            (Error::is_grammar, Self::Grammar),
            (Error::is_structural_tag, Self::Tag),
            (Error::is_request, Self::Request),
            (Error::is_vocabulary, Self::Vocabulary),
            (Error::is_unsatisfiable, Self::Unsatisfiable),
            (Error::is_budget, Self::Budget),
            (Error::is_input, Self::Input),
        ];
        match result {
            Ok(()) => Self::Fine,
            Err(error) => kinds.iter().find(|(is, _)| is(error)).map_or(Self::Any, |(_, end)| *end),
        }
    }
}

/// What an attack may use, and what it used.
pub struct Gauge {
    pub limits: Limits,
    /// When the input was there: the memory held, and the time taken.
    armed: Option<(u64, Duration)>,
}

impl Gauge {
    /// The input is there: from here on, it counts.
    pub fn arm(&mut self) -> &Limits {
        // Sets the peak back to what is held (proc(5), clear_refs).
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        self.armed = Some((status("VmRSS:").unwrap_or(0), processor_time().unwrap_or_default()));
        &self.limits
    }
}

/// What a child said.
pub struct Report {
    pub end: String,
    /// Bytes held when the input was there, and how many more there were at the peak.
    pub held: u64,
    pub memory: u64,
    pub time: Duration,
}

/// Where this process is a child, runs its attack and reports.
pub fn obey(attacks: &[Attack]) {
    let Ok(order) = std::env::var(ATTACK) else { return };
    let words: Vec<&str> = order.splitn(3, ' ').collect();
    let [bytes, time, name] = words[..] else { panic!("{order}") };
    let attack = attacks.iter().find(|attack| attack.name == name).expect("a known attack");
    let (bytes, time) = (bytes.parse().expect("bytes"), Duration::from_millis(time.parse().expect("ms")));
    let mut gauge = Gauge { limits: Limits { bytes, time, ..Limits::default() }, armed: None };
    let result = (attack.run)(&mut gauge);
    let (held, began) = gauge.armed.expect("every attack arms its gauge");
    let memory = status("VmHWM:").unwrap_or(0).saturating_sub(held);
    let time = processor_time().unwrap_or_default().saturating_sub(began);
    println!("\n{REPORT} {:?} {held} {memory} {}", End::of(&result), time.as_millis());
    if let Err(error) = result {
        // The pipe holds 64 KiB, and nobody reads it yet.
        println!("{:.1000}", error.to_string());
    }
}

/// Runs an attack in a child, which runs the test `obeying`; the error says how it failed.
pub fn run(attack: &Attack, obeying: &str, limits: &Limits) -> std::result::Result<Report, String> {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", obeying, "--ignored", "--nocapture", "--test-threads=1"])
        .env(ATTACK, format!("{} {} {}", limits.bytes, limits.time.as_millis(), attack.name))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    let began = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().expect("a child");
            return Err("it hangs".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    let said = String::from_utf8_lossy(&output.stdout);
    let report = said.lines().find_map(|line| line.strip_prefix(REPORT));
    let Some(report) = report.filter(|_| output.status.success()) else {
        return Err(format!("{}\n{said}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    };
    let words: Vec<&str> = report.split_whitespace().collect();
    let [end, held, memory, time] = words[..] else { return Err(report.to_owned()) };
    Ok(Report {
        end: end.to_owned(),
        held: held.parse().expect("bytes"),
        memory: memory.parse().expect("bytes"),
        time: Duration::from_millis(time.parse().expect("milliseconds")),
    })
}

/// A field of this process's status, in bytes; `None` where the system has no such file.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix(name))?;
    field.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Processor time of this process, which other work on the machine does not change; the wall's where the system
/// does not say.
fn processor_time() -> Option<Duration> {
    // Run time of every thread in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let times = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(times.sum()))
}
