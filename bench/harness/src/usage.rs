//! Processor time and memory of a program and its children, as the kernel counts them.
//!
//! Processor time is the sum of `/proc/<pid>/task/<tid>/schedstat` (nanoseconds on a processor,
//! proc(5)): finer than the ticks of `stat`. It leaves out ended threads and children: the programs
//! measured here keep theirs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A program and everything it has started.
#[derive(Clone, Debug)]
pub struct Tree {
    roots: Vec<u32>,
}

/// Counted at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time since the start, in user and kernel mode.
    pub cpu: Duration,
    /// Resident bytes, shared pages included.
    pub resident: u64,
}

// === impl Tree ===

impl Tree {
    /// The processes `roots` with all their descendants, looked up again each time.
    pub fn new(roots: impl IntoIterator<Item = u32>) -> Self {
        Self { roots: roots.into_iter().collect() }
    }

    /// The processes of it that are there now.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = self.roots.clone();
        let mut next = 0;
        while let Some(&process) = found.get(next) {
            found.extend(children(process));
            next += 1;
        }
        found
    }

    /// Fails when one of the roots is gone.
    pub fn usage(&self) -> Result<Usage> {
        for root in &self.roots {
            fs::metadata(format!("/proc/{root}")).with_context(|| format!("process {root} has ended"))?;
        }
        let mut total = Usage::default();
        for process in self.processes() {
            total.cpu += processor_time(process);
            total.resident += resident(process);
        }
        Ok(total)
    }

    /// Processor time from `before` until now.
    pub fn cpu_since(&self, before: Usage) -> Result<Duration> {
        Ok(self.usage()?.cpu.saturating_sub(before.cpu))
    }
}

fn tasks(process: u32) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten()
}

fn children(process: u32) -> Vec<u32> {
    let listed = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let parsed = |listed: String| listed.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>();
    tasks(process).map(listed).flat_map(parsed).collect()
}

fn processor_time(process: u32) -> Duration {
    let nanoseconds =
        |path: &Path| -> Option<u64> { fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok() };
    Duration::from_nanos(tasks(process).filter_map(|task| nanoseconds(&task.path().join("schedstat"))).sum())
}

fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn work_done_here_is_counted() {
        let tree = Tree::new([std::process::id()]);
        let before = tree.usage().unwrap();
        let mut spent = Duration::ZERO;
        while spent < Duration::from_millis(20) {
            (0..100_000_u64).for_each(|n| _ = black_box(n));
            spent = tree.cpu_since(before).unwrap();
        }
        assert!(before.resident > 1 << 20, "{before:?}");
    }

    #[test]
    fn children_belong_to_it() {
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "sleep 100 & echo; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
        let tree = Tree::new([shell.id()]);
        let processes = tree.processes();
        assert_eq!(processes.len(), 2, "{processes:?}");
        for process in processes.iter().skip(1) {
            Command::new("kill").arg(process.to_string()).status().unwrap();
        }
        shell.wait().unwrap();
        assert!(tree.usage().is_err(), "it has ended");
    }
}
