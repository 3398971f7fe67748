//! Counts and findings of a run.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::weather::Weather;

/// Violations that are printed; one alone fails the run.
const TOLD: usize = 20;

/// Marks findings that no other run takes back: `.ci/run` does not repeat one that printed it.
const FINAL: &str = "VIOLATION";
/// Marks findings that a busy machine can explain.
const SHORT: &str = "TOO LITTLE";
/// The fault during which reads are counted by themselves.
pub const REPLACED: &str = "replace-gateway";

/// A number that grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

#[derive(Debug, Default)]
pub struct Counts {
    /// Requests that were to create something.
    pub written: Count,
    pub created: Count,
    pub existed: Count,
    pub not_done: Count,
    pub unknown: Count,
    /// Requests of writers that were repeated.
    pub retries: Count,
    pub reads: Count,
    pub reads_retried: Count,
    /// Reads that failed twice where they may.
    pub reads_failed: Count,
    /// Reads that succeeded, at the second try at the latest, while gateways were replaced.
    pub reads_replaced: Count,
    pub uploads: Count,
    pub uploads_read_back: Count,
    pub watch_streams: Count,
    pub watch_resumes: Count,
    pub watch_lists: Count,
    pub watch_events: Count,
    pub follows: Count,
    pub lines: Count,
    pub downloads: Count,
    pub downloads_cut: Count,
}

/// The report to which all parts of a run write.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub counts: Counts,
    pub weather: Weather,
    began: Instant,
    faults: Mutex<Vec<String>>,
    violations: Mutex<Vec<String>>,
}

// === impl Count ===

impl Count {
    pub fn add(&self) {
        self.add_many(1);
    }

    pub fn add_many(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

// === impl Report ===

impl Report {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            counts: Counts::default(),
            weather: Weather::default(),
            began: Instant::now(),
            faults: Mutex::default(),
            violations: Mutex::default(),
        }
    }

    /// Prints a line with the time of the run.
    #[expect(clippy::print_stderr, reason = "a run of an hour has to say what it does")]
    pub fn say(&self, what: &str) {
        eprintln!("chaos {:7.1}s  {what}", self.began.elapsed().as_secs_f64());
    }

    /// A fault was done.
    pub fn done(&self, fault: &str) {
        self.faults.lock().push(fault.to_owned());
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().clone()
    }

    /// A promise is broken: `what`, as `who` found it. A pass of the same seed the next time proves
    /// nothing: a race does not follow from it.
    pub fn violation(&self, who: &str, what: &str) {
        self.wrong(FINAL, who, what);
    }

    /// The run did too little, or ran out of time.
    pub fn too_little(&self, what: &str) {
        self.wrong(SHORT, "the run", what);
    }

    fn wrong(&self, kind: &str, who: &str, what: &str) {
        let weather = self.weather.now().what;
        let text = format!("{who}: {what}\n    seed {}, during: {weather}", self.seed);
        self.say(&format!("{kind}  {text}"));
        self.violations.lock().push(text);
    }

    pub fn is_violated(&self) -> bool {
        !self.violations.lock().is_empty()
    }

    /// A ledger of nothing holds, too: some of each kind of work has to have been done, and each of
    /// the faults that every run begins with.
    pub fn check_work(&self, first: &[String]) {
        let (c, done) = (&self.counts, self.faults());
        if done.is_empty() {
            self.too_little("no fault was done and recovered from");
        }
        for fault in first.iter().filter(|fault| !done.contains(fault)) {
            self.too_little(&format!("{fault} was not done and recovered from"));
        }
        for (count, what) in [
            (&c.created, "write was told 201"),
            (&c.uploads_read_back, "upload was read back"),
            (&c.watch_events, "event came"),
            (&c.lines, "line of a followed log came"),
        ] {
            if count.get() == 0 {
                self.too_little(&format!("no {what}"));
            }
        }
        if c.downloads.get() <= c.downloads_cut.get() {
            self.too_little("no download was whole");
        }
        if done.iter().any(|fault| fault == REPLACED) && c.reads_replaced.get() == 0 {
            self.too_little("no read while gateways were replaced");
        }
    }

    /// All violations, or as many as a person reads; empty if there are none.
    pub fn verdict(&self) -> String {
        let violations = self.violations.lock();
        let told = violations.iter().take(TOLD).cloned().collect::<Vec<_>>().join("\n");
        let more = violations.len().saturating_sub(TOLD);
        if more > 0 { format!("{told}\n… and {more} more") } else { told }
    }
}

impl fmt::Display for Report {
    /// The table at the end of a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        let mut kinds = std::collections::BTreeMap::<_, u32>::new();
        for fault in self.faults() {
            *kinds.entry(fault).or_default() += 1;
        }
        let faults: Vec<String> = kinds.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
        writeln!(f, "seed               {}", self.seed)?;
        writeln!(f, "faults             {}: {}", kinds.values().sum::<u32>(), faults.join(", "))?;
        writeln!(
            f,
            "writes             {}: {} told 201, {} told 409 at a repetition, {} not done, {} unknown",
            c.written, c.created, c.existed, c.not_done, c.unknown
        )?;
        writeln!(f, "retries            {} of writes, {} of {} reads", c.retries, c.reads_retried, c.reads)?;
        writeln!(f, "reads              {} while gateways were replaced", c.reads_replaced)?;
        writeln!(f, "reads failed twice {} (while killed or frozen)", c.reads_failed)?;
        writeln!(f, "uploads            {}: {} told as done, and read back", c.uploads, c.uploads_read_back)?;
        writeln!(
            f,
            "watches            {} events, {} streams, {} resumed, {} listed again",
            c.watch_events, c.watch_streams, c.watch_resumes, c.watch_lists
        )?;
        writeln!(
            f,
            "logs               {} lines, {} followed, {} downloads, {} of them cut and seen to be",
            c.lines, c.follows, c.downloads, c.downloads_cut
        )?;
        write!(f, "violations         {}", self.violations.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a run that did all that is counted, except what `change` takes away.
    fn told(change: impl FnOnce(&Counts)) -> String {
        let report = Report::new(1);
        let c = &report.counts;
        for count in [&c.created, &c.uploads_read_back, &c.watch_events, &c.lines, &c.downloads] {
            count.add();
        }
        change(c);
        report.done(REPLACED);
        report.check_work(&[REPLACED.to_owned()]);
        report.verdict()
    }

    #[test]
    fn a_run_in_which_nobody_read_while_gateways_were_replaced_shows_nothing() {
        assert_eq!(told(|counts| counts.reads_replaced.add()), "");
        assert!(told(|_| ()).contains("no read while gateways were replaced"));
    }

    #[test]
    fn a_run_that_left_out_what_each_begins_with_shows_too_little() {
        let report = Report::new(1);
        report.done("kill-agent");
        report.check_work(&[REPLACED.to_owned()]);
        assert!(report.verdict().contains("replace-gateway was not done"), "{}", report.verdict());
    }
}
