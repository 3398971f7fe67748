//! Rounds: every target of a scenario once a round, in turns, so that disturbances of the machine
//! affect all.

#[cfg(test)]
pub mod fake;
mod progress;
#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

pub use self::progress::Progress;
use crate::args::{Args, Command};
use crate::contender::{Load, Missing};
use crate::outcome::{Measured, Outcome, Plan};
use crate::report::{self, Report, Run, Section};
use crate::scenario::{self, Scenario};
use crate::testbed::Testbed;

/// The longest warm-up: connections are made and caches filled long before.
const WARM_UP: Duration = Duration::from_secs(1);
/// Length of a measurement whose figures are not used.
const SMOKE: Duration = Duration::from_millis(300);

/// A target while its scenario runs.
struct Lane {
    measured: Measured,
    /// The load, until it fails.
    load: Option<Box<dyn Load>>,
}

/// Measures as the command line asks, and writes the report after each scenario, so that an
/// interrupted run keeps its results.
/// # Errors
/// At the end, when one of ours or the direct way has failed. Peers may fail or be absent: the
/// report says so.
pub fn run(args: &Args) -> Result<()> {
    let scenarios = wanted(&args.command)?;
    let smoke = matches!(args.command, Command::Smoke { .. });
    let time = Duration::from_secs(args.seconds);
    let plan = if smoke { Plan { rounds: 1, time: SMOKE, smoke } } else { Plan { rounds: args.rounds, time, smoke } };
    ensure!(plan.rounds > 0, "no rounds");
    let out = args.out();
    let continues = args.add && report::has(&out);
    let mut report = if continues { Report::continued(&out, &args.programs)? } else { Report::here(&args.programs) };
    let mut testbed = Testbed::new(args.programs.clone(), smoke, args.size()?)?;
    let (mut progress, mut failed) = (Progress::new(scenarios.len()), Vec::new());
    let begun = Run::now(&plan);
    for scenario in scenarios {
        let run = begun.next();
        let outcome = measure(scenario, &mut testbed, plan, &mut progress);
        if outcome.is_bad() {
            failed.push(outcome.scenario.about.name);
        }
        report.put(Section::new(&outcome, run));
        report::save(&report, &out)?;
    }
    if matches!(&args.command, Command::Smoke { scenarios } if scenarios.is_empty()) {
        testbed.floor(|floor| dist::train(floor, 1)).context("what builds are trained with")?;
    }
    progress.end(&report::screen(&report), &out);
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Prints the list of scenarios.
pub fn list() -> Result<()> {
    let line = |Scenario { about, .. }| writeln!(io::stdout(), "{:<18} {}", about.name, about.title);
    Ok(scenario::all().into_iter().try_for_each(line)?)
}

fn wanted(command: &Command) -> Result<Vec<Scenario>> {
    let mut scenarios = scenario::all();
    if let Command::Run { scenarios: wanted } | Command::Smoke { scenarios: wanted } = command
        && !wanted.is_empty()
    {
        for name in wanted {
            let known = scenarios.iter().any(|scenario| scenario.about.name == name);
            ensure!(known, "no scenario \"{name}\": see `bench list`");
        }
        scenarios.retain(|scenario| wanted.iter().any(|name| name == scenario.about.name));
    }
    Ok(scenarios)
}

/// Never fails: a target that cannot be measured is in the outcome with its reason.
pub fn measure(scenario: Scenario, testbed: &mut Testbed, plan: Plan, progress: &mut Progress) -> Outcome {
    progress.scenario(&scenario);
    let contenders = match contained(|| (scenario.contenders)(testbed)) {
        Ok(contenders) => contenders,
        Err(error) => {
            let missing = Missing::of(&error);
            progress.missing("everything", &missing);
            return Outcome { scenario, targets: Vec::new(), missing: Some(missing) };
        }
    };
    let mut lanes: Vec<Lane> = Vec::new();
    for contender in contenders {
        let (load, missing) = match contender.load {
            Ok(load) => (Some(load), None),
            Err(missing) => (None, Some(missing)),
        };
        if let Some(missing) = &missing {
            progress.missing(contender.target, missing);
        }
        lanes.push(Lane { measured: Measured { target: contender.target, samples: Vec::new(), missing }, load });
    }
    if !plan.smoke {
        for lane in &mut lanes {
            lane.measure(plan.time.min(WARM_UP), progress, "warm-up", &scenario);
            lane.measured.samples.clear();
        }
    }
    rounds(&mut lanes, &scenario, plan, progress);
    let targets = lanes.into_iter().map(|lane| lane.measured).collect();
    Outcome { scenario, targets, missing: None }
}

/// Each round begins with the next target, so that no target is always first, or always after the
/// same one's garbage.
fn rounds(lanes: &mut [Lane], scenario: &Scenario, plan: Plan, progress: &mut Progress) {
    let count = lanes.len();
    for round in 0..plan.rounds {
        let label = format!("{}/{}", round + 1, plan.rounds);
        for turn in 0..count {
            lanes[(round + turn) % count].measure(plan.time, progress, &label, scenario);
        }
    }
}

/// A panic is a failure of its target: the others go on. What it left behind is dropped or not used
/// again.
fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        bail!("it panicked: {text}")
    })
}

// === impl Lane ===

impl Lane {
    /// A failed load is over for this scenario, and ends all that it had started.
    fn measure(&mut self, time: Duration, progress: &mut Progress, label: &str, scenario: &Scenario) {
        let Some(load) = &mut self.load else { return };
        match contained(|| load.measure(time)) {
            Ok(sample) => {
                progress.sample(label, self.measured.target, &sample, scenario);
                self.measured.samples.push(sample);
            }
            Err(error) => {
                let missing = Missing::of(&error);
                progress.missing(self.measured.target, &missing);
                self.measured.missing = Some(missing);
                self.load = None;
            }
        }
    }
}
