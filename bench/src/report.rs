//! Results of a run, as they are written down: the machine, the targets, figures, goals and whether
//! they are met. `report.json` holds all of it; the Markdown and the charts are made from it, now
//! or later.

mod bars;
mod chart;
mod judgement;
mod lines;
mod machine;
mod markdown;
mod number;
mod programs;
mod publish;
mod screen;
mod store;
mod svg;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

pub use self::publish::publish;
pub use self::screen::screen;
use self::store::load;
pub use self::store::{has, save};
pub use self::words::line;
use crate::contender::Missing;
use crate::figure::Bound;
use crate::given::Programs;
use crate::outcome::{Measured, Outcome, Plan};
use crate::statistics::Summary;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub machine: machine::Machine,
    pub programs: Vec<programs::Version>,
    pub scenarios: Vec<Section>,
}

/// When and how a scenario was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// UTC, when it began.
    pub at: String,
    /// Commit of this checkout, and whether files were changed since.
    pub commit: String,
    pub rounds: usize,
    /// Planned length of one measurement.
    pub seconds: f64,
    /// Only tried: its figures mean nothing.
    pub smoke: bool,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub title: String,
    pub method: String,
    pub run: Run,
    pub figures: Vec<Column>,
    pub targets: Vec<Row>,
    pub goals: Vec<Verdict>,
    /// The first figure over the quantity that grows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub axis: Option<Axis>,
    /// Why there is nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub missing: Option<Gap>,
}

/// A figure's place in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub key: String,
    pub title: String,
    pub digits: usize,
}

/// A target's figures, by key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub target: String,
    pub summaries: BTreeMap<String, Summary>,
    /// A sample for each round.
    pub samples: Vec<BTreeMap<String, f64>>,
    /// Why there are none, or no more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub missing: Option<Gap>,
}

/// Why something was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub reason: String,
    /// It should have worked.
    pub failed: bool,
}

/// A goal and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub figure: String,
    pub of: String,
    pub beside: Option<String>,
    pub over: Option<String>,
    /// Digits after the point.
    pub digits: usize,
    /// Its value in every round, none where it could not be computed.
    pub rounds: Vec<Option<f64>>,
    pub summary: Option<Summary>,
    pub must: Option<Judged>,
    pub aim: Option<Judged>,
}

/// A bound, and whether the median is on its good side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub bound: Bound,
    /// `None`: not measured.
    pub met: Option<bool>,
    /// Number of rounds in which it was met.
    pub rounds: usize,
}

/// The quantity that grows, and each target's position on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    pub title: String,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub title: String,
    /// Place on the axis, target.
    pub points: Vec<(f64, String)>,
}

// === impl Report ===

impl Report {
    /// A report on this machine, without any figures yet.
    pub fn here(given: &Programs) -> Self {
        Self { machine: machine::Machine::here(), programs: programs::versions(given), scenarios: Vec::new() }
    }

    /// The report in `out`, to be continued: it must be of this machine. Versions of the present
    /// programs replace those in it.
    pub fn continued(out: &Path, given: &Programs) -> Result<Self> {
        let (mut report, here) = (load(out)?, Self::here(given));
        let (then, now) = (&report.machine, &here.machine);
        ensure!(then.is_like(now), "the report in {} is of another machine: {then:?}", out.display());
        for version in here.programs {
            match report.programs.iter_mut().find(|known| known.program == version.program) {
                Some(known) if !version.is_absent() => *known = version,
                Some(_) => {} // keeps the version that was measured
                None => report.programs.push(version),
            }
        }
        Ok(report)
    }

    /// Puts `section` at its end, or in the place of the one with that name.
    pub fn put(&mut self, section: Section) {
        match self.scenarios.iter_mut().find(|known| known.name == section.name) {
            Some(known) => *known = section,
            None => self.scenarios.push(section),
        }
    }
}

// === impl Run ===

impl Run {
    /// A run that begins now, of the checkout as it is now: it may change while the programs built
    /// from it are measured.
    pub fn now(plan: &Plan) -> Self {
        let Plan { rounds, time, smoke } = *plan;
        Self { at: machine::now(), commit: machine::commit(), rounds, seconds: time.as_secs_f64(), smoke }
    }

    /// The same, for a scenario that begins now.
    pub fn next(&self) -> Self {
        Self { at: machine::now(), ..self.clone() }
    }
}

// === impl Section ===

impl Section {
    pub fn new(outcome: &Outcome, run: Run) -> Self {
        let about = outcome.scenario.about;
        let column = |figure: &crate::figure::Figure| Column {
            key: figure.key.to_owned(),
            title: figure.title.to_owned(),
            digits: figure.digits,
        };
        Self {
            name: about.name.to_owned(),
            title: about.title.to_owned(),
            method: about.method.to_owned(),
            run,
            figures: about.figures.iter().map(column).collect(),
            targets: outcome.targets.iter().map(Row::new).collect(),
            goals: about.goals.iter().map(|goal| judgement::judge(goal, outcome)).collect(),
            axis: about.axis.map(Axis::from),
            missing: outcome.missing.as_ref().map(Gap::from),
        }
    }

    /// The figure that the chart and the progress show.
    pub fn main_figure(&self) -> Option<&Column> {
        self.figures.first()
    }
}

// === impl Row ===

impl Row {
    fn new(measured: &Measured) -> Self {
        let owned = |sample: &crate::figure::Sample| -> BTreeMap<String, f64> {
            sample.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
        };
        let samples: Vec<_> = measured.samples.iter().map(owned).collect();
        let keys = samples.iter().flat_map(BTreeMap::keys).cloned();
        let values = |key: &String| samples.iter().filter_map(|sample| sample.get(key).copied()).collect::<Vec<_>>();
        let summaries =
            keys.filter_map(|key| Some((Summary::of(values(&key))?, key))).map(|(summary, key)| (key, summary));
        Self {
            target: measured.target.to_owned(),
            summaries: summaries.collect(),
            missing: measured.missing.as_ref().map(Gap::from),
            samples,
        }
    }
}

// === impl Gap ===

impl From<&Missing> for Gap {
    fn from(missing: &Missing) -> Self {
        match missing {
            Missing::Skipped(reason) => Self { reason: reason.clone(), failed: false },
            Missing::Failed(reason) => Self { reason: reason.clone(), failed: true },
        }
    }
}

// === impl Axis ===

impl From<crate::figure::Axis> for Axis {
    fn from(axis: crate::figure::Axis) -> Self {
        let point = |(place, target): &(f64, crate::figure::Target)| (*place, (*target).to_owned());
        let line = |line: &crate::figure::Line| Line {
            title: line.title.to_owned(),
            points: line.points.iter().map(point).collect(),
        };
        Self { title: axis.title.to_owned(), lines: axis.lines.iter().map(line).collect() }
    }
}
