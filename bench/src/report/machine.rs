//! The machine of the run.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::programs::output;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// A guest shares its processors with neighbours that it cannot see.
    pub virtualized: bool,
    /// Memory in GiB.
    pub memory: f64,
    pub kernel: String,
    pub system: String,
    /// Load of the last minute, when the run began: others at work move every figure.
    pub load: f64,
}

// === impl Machine ===

impl Machine {
    /// This machine, as far as it can be determined.
    pub fn here() -> Self {
        let processors = read("/proc/cpuinfo");
        let kibibytes = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| first_number(&text));
        let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
        let system = read("/etc/os-release");
        let system = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
        Self {
            processor: field(&processors, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: thread::available_parallelism().map_or(0, Into::into),
            virtualized: field(&processors, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            memory: kibibytes.unwrap_or_default() / (1024.0 * 1024.0),
            kernel,
            system: system.trim_matches('"').to_owned(),
            load: first_number(&read("/proc/loadavg")).unwrap_or_default(),
        }
    }

    /// Whether figures of the two are comparable.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.processor, self.cores, &self.kernel) == (&other.processor, other.cores, &other.kernel)
    }
}

/// UTC, to the minute.
pub fn now() -> String {
    let now = OffsetDateTime::now_utc();
    format!("{} {:02}:{:02}", now.date(), now.hour(), now.minute())
}

/// `1a2b3c4`, or `1a2b3c4 with changes`.
pub fn commit() -> String {
    let directory = env!("CARGO_MANIFEST_DIR");
    let git = |args: &[&str]| output("git", [&["-C", directory], args].concat());
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    if changed { format!("{} with changes", commit.trim()) } else { commit.trim().to_owned() }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let values = text.lines().filter_map(|line| line.split_once(':'));
    values.into_iter().find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cores_memory_and_a_name() {
        let machine = Machine::here();
        assert!(machine.cores > 0 && machine.memory > 0.1, "{machine:?}");
        assert!(!machine.kernel.is_empty() && machine.system != "unknown", "{machine:?}");
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t: 85\nmodel name\t: A Processor: fast\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A Processor: fast"));
        assert_eq!(field(text, "flags"), None);
    }
}
