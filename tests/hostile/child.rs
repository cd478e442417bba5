//! Runs attacks in separate processes, to measure their resources and to detect crashes.

use burn_dfa::ErrorKind;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use burn_dfa::{Error, Limits, Result};

macro_rules! attacks {
    ($($name:literal: $end:ident = $run:expr;)*) => {
        &[$(Attack { name: $name, end: End::$end, run: $run }),*]
    };
}
pub(crate) use attacks;

/// Names the attack for a child.
const ATTACK: &str = "BURN_DFA_ATTACK";
/// The prefix of the line with a child's report.
const REPORT: &str = "attack:";
/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// An attack: its name, its required end, and its code.
pub struct Attack {
    pub name: &'static str,
    pub end: End,
    pub run: fn(&mut Gauge) -> Result<()>,
}

/// The required end of an attack.
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
    Artifact,
    Unsatisfiable,
    Budget,
    Input,
    /// It is harmless, or it exceeds the time on a slow machine.
    Bounded,
    /// An error of another kind; no attack requires it.
    Other,
}

impl End {
    pub fn of(result: &Result<()>) -> Self {
        type Is = fn(&Error) -> bool;
        let kinds: [(Is, Self); 11] = [
            (|error| error.kind() == ErrorKind::Limit, Self::Limit),
            (|error| error.kind() == ErrorKind::Pattern, Self::Pattern),
            (|error| error.kind() == ErrorKind::Schema, Self::Schema),
            (|error| error.kind() == ErrorKind::Grammar, Self::Grammar),
            (|error| error.kind() == ErrorKind::StructuralTag, Self::Tag),
            (|error| error.kind() == ErrorKind::Request, Self::Request),
            (|error| error.kind() == ErrorKind::Vocabulary, Self::Vocabulary),
            (|error| error.kind() == ErrorKind::Artifact, Self::Artifact),
            (|error| error.kind() == ErrorKind::Unsatisfiable, Self::Unsatisfiable),
            (|error| error.kind() == ErrorKind::Budget, Self::Budget),
            (|error| error.kind() == ErrorKind::Input, Self::Input),
        ];
        match result {
            Ok(()) => Self::Fine,
            Err(error) => kinds.iter().find(|(is, _)| is(error)).map_or(Self::Other, |(_, end)| *end),
        }
    }
}

/// The limits and the measured resources of an attack.
pub struct Gauge {
    pub limits: Limits,
    /// The held memory and the used time after preparing the input.
    armed: Option<(u64, Duration)>,
}

impl Gauge {
    /// The input is prepared: the measurement begins.
    pub fn arm(&mut self) -> &Limits {
        // Resets the peak to the current memory (proc(5), clear_refs).
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        self.armed = Some((status("VmRSS:").unwrap_or(0), processor_time().unwrap_or_default()));
        &self.limits
    }
}

/// The report of a child.
pub struct Report {
    pub end: String,
    /// Bytes held after preparing the input, and additional bytes at the peak.
    pub held: u64,
    pub memory: u64,
    pub time: Duration,
}

/// In a child, runs its attack and reports.
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
        // The pipe holds 64 KiB, and is not read yet.
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

/// A field of this process's status, in bytes; `None` if the system has no such file.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix(name))?;
    field.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Processor time of this process, which is independent of other work on the machine; wall time if
/// the system does not report it.
fn processor_time() -> Option<Duration> {
    // Run time of every thread in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let times = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(times.sum()))
}

// The bounds of memory and time in docs/security.md.

/// The maximum number of simultaneous structures, each within [`Limits::bytes`].
const STRUCTURES: u64 = 4;

/// The maximum memory of reading, as a multiple of the memory held with the input.
const READING: u64 = 6;

/// The maximum time between two checks of the clock.
const OVERTIME: Duration = Duration::from_secs(2);

/// The maximum time of reading per MiB held with the input.
const READING_TIME: Duration = Duration::from_millis(30);

/// The time allowed to a slow or busy machine, as a multiple of the bounds. The bounds were
/// measured on one machine, and the test looks for attacks without a bound on their time.
const SLOWNESS: u32 = 3;

/// Checks that attacks, run in children by the test `obeying`, end as required, within memory and
/// time.
pub fn hold(attacks: &[Attack], obeying: &str) {
    let limits = Limits { bytes: 64 << 20, time: Duration::from_secs(2), ..Limits::default() };
    let mut failed = Vec::new();
    for attack in attacks {
        let report = match run(attack, obeying, &limits) {
            Ok(report) => report,
            Err(reason) => {
                failed.push(format!("{}: {reason}", attack.name));
                continue;
            }
        };
        let Report { held, memory, time, .. } = report;
        let (mib, ms) = (|bytes| bytes >> 20, time.as_millis());
        println!("{:40} {:14} {:5} + {:5} MiB {ms:6} ms", attack.name, report.end, mib(held), mib(memory));
        let ends: &[End] = if attack.end == End::Bounded { &[End::Fine, End::Limit] } else { &[attack.end] };
        if !ends.iter().any(|end| report.end == format!("{end:?}")) {
            failed.push(format!("{}: {:?} was to come of it", attack.name, attack.end));
        }
        let max = STRUCTURES * limits.bytes as u64 + READING * held;
        let longest = limits.time + (OVERTIME + READING_TIME * mib(held) as u32) * SLOWNESS;
        if memory > max || time > longest {
            let used = format!("{memory} bytes of at most {max}, {time:?} of at most {longest:?}");
            failed.push(format!("{}: {used}", attack.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
