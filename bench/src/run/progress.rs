//! Progress, line by line, for a waiting user.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use crate::contender::Missing;
use crate::figure::Sample;
use crate::report::line;
use crate::scenario::Scenario;

pub struct Progress {
    out: Box<dyn Write>,
    scenarios: usize,
    begun: usize,
}

// === impl Progress ===

impl Progress {
    /// Progress of a run of so many scenarios, on standard error.
    pub fn new(scenarios: usize) -> Self {
        Self { out: Box::new(io::stderr()), scenarios, begun: 0 }
    }

    #[cfg(test)]
    pub fn silent() -> Self {
        Self { out: Box::new(io::sink()), ..Self::new(1) }
    }

    pub fn scenario(&mut self, scenario: &Scenario) {
        self.begun += 1;
        let (begun, scenarios) = (self.begun, self.scenarios);
        self.say(format_args!("[{begun}/{scenarios}] {}: {}", scenario.about.name, scenario.about.title));
    }

    /// A target's first figure.
    pub fn sample(&mut self, label: &str, target: &str, sample: &Sample, scenario: &Scenario) {
        let Some(figure) = scenario.about.figures.first() else { return };
        let value = sample.get(figure.key).map_or_else(|| "-".to_owned(), |value| format!("{value:.*}", figure.digits));
        self.say(format_args!("  {label:<8} {target:<28} {value:>12}  {}", figure.title));
    }

    pub fn missing(&mut self, target: &str, missing: &Missing) {
        let (word, reason) = match missing {
            Missing::Skipped(reason) => ("skipped", reason),
            Missing::Failed(reason) => ("FAILED", reason),
        };
        self.say(format_args!("  {word:<8} {target}: {}", line(reason)));
    }

    /// `summary` is for standard output.
    pub fn end(mut self, summary: &str, out: &Path) {
        // The reader of a pipe may have left.
        drop(io::stdout().write_all(summary.as_bytes()));
        let report = out.join("report.md");
        self.say(format_args!("report: {}", report.canonicalize().unwrap_or(report).display()));
    }
    /// The reader may have left.
    fn say(&mut self, line: fmt::Arguments<'_>) {
        drop(writeln!(self.out, "{line}"));
    }
}
