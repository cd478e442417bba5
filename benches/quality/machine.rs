//! The machine: its processor, its load, and the memory of a process.

use std::fs::read_to_string;

/// Sets of vector instructions that products of matrices use.
const INSTRUCTIONS: [&str; 6] = ["avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "asimddp"];

/// The processor and its number of cores.
pub fn machine() -> String {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let model = field("model name").unwrap_or(std::env::consts::ARCH);
    let flags: Vec<&str> =
        field("flags").or_else(|| field("Features")).unwrap_or_default().split(' ').collect();
    let known: Vec<&str> = INSTRUCTIONS.into_iter().filter(|name| flags.contains(name)).collect();
    format!("{model}, {} cores, {}", cores(), known.join(" "))
}

/// The number of cores for this process.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The number of processes that wanted to run, averaged over the last minute; `None` if the system
/// does not report it.
pub fn load() -> Option<f64> {
    read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The peak of resident memory of this process in bytes; 0 if the system does not report it.
pub fn peak_memory() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kibibytes.unwrap_or(0u64) << 10
}
