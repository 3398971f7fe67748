//! A whole run: everything is started, callers begin, faults follow one another, and at the end the
//! answers that callers got are compared with what there is.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::fault::{Fault, Hand, Lengths};
use crate::load::Load;
use crate::report::Report;
use crate::world::{Target, World};

/// Length of a run in the suite.
const SHORT: Duration = Duration::from_secs(85);
/// The first faults of each run, independent of its dice: those that a promise is about, and those
/// that take longer than a link stays without a word.
const FIRST: [Fault; 4] = [
    Fault::Replace(Target::Gateway),
    Fault::Kill(Target::Gateway),
    Fault::Replace(Target::TunnelServer),
    Fault::Silence,
];
/// Limit for the last changes to come to watchers that wait between two tries.
const WATCHERS: Duration = Duration::from_secs(90);

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long faults go on. `None`: as long as the suite has time.
    pub minutes: Option<f64>,
    pub seed: u64,
    /// Faults whose names contain one of these; all if there are none.
    pub only: Vec<String>,
}

// === impl Options ===

impl Options {
    fn length(&self) -> Duration {
        self.minutes.map_or(SHORT, |minutes| Duration::from_secs_f64(minutes * 60.0))
    }

    fn lengths(&self) -> Lengths {
        let seconds = Duration::from_secs;
        match self.minutes {
            None => Lengths { freeze: seconds(3), away: seconds(10), limited: seconds(3), grace: seconds(5) },
            // Longer than any keepalive.
            Some(_) => Lengths { freeze: seconds(30), away: seconds(30), limited: seconds(8), grace: seconds(30) },
        }
    }

    fn faults(&self) -> Vec<Fault> {
        Fault::all().into_iter().filter(|fault| self.has(*fault)).collect()
    }

    /// The faults that come first.
    fn first(&self) -> Vec<Fault> {
        FIRST.into_iter().filter(|fault| self.has(*fault)).collect()
    }

    fn has(&self, fault: Fault) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| fault.to_string().contains(name.as_str()))
    }
}

/// Runs it. An error says what is wrong, with the seed.
pub fn run(options: &Options) -> Result<()> {
    let faults = options.faults();
    if faults.is_empty() {
        let names: Vec<String> = Fault::all().iter().map(ToString::to_string).collect();
        bail!("no such fault; there are {}", names.join(", "));
    }
    let report = Arc::new(Report::new(options.seed));
    report.say(&format!("seed {}", options.seed));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut world = World::start(runtime.handle())?;
    let first: Vec<String> = options.first().iter().map(ToString::to_string).collect();
    let outcome = trouble(options, faults, &report, &mut world, runtime.handle());
    // A program that ended by itself is the reason for the rest.
    if let Err(ended) = world.check() {
        report.violation("a program", &format!("{ended:#}"));
    }
    report.check_work(if outcome.is_ok() { &first } else { &[] });
    report.say(&format!("done\n{report}"));
    let verdict = report.verdict();
    if outcome.is_err() || !verdict.is_empty() {
        report.say(&format!("the logs of this run are in {}", world.keep().display()));
    }
    runtime.shutdown_background();
    outcome.with_context(|| format!("seed {}, during: {}", options.seed, report.weather.now().what))?;
    if verdict.is_empty() { Ok(()) } else { bail!("{verdict}") }
}

fn trouble(
    options: &Options,
    faults: Vec<Fault>,
    report: &Arc<Report>,
    world: &mut World,
    runtime: &Handle,
) -> Result<()> {
    world.settle(runtime).context("nothing was done yet")?;
    report.say("everything works");
    let load = Load::start(runtime, report, &world.routes(), world.direct(), options.length());
    let done = inflict(options, faults, (report, world, runtime));
    report.weather.change("the end", false);
    report.say("the callers end");
    for panic in world.panics()? {
        report.violation("a program", &panic);
    }
    // Answers are compared also where not everything came back: objects may have been lost.
    let compared = runtime.block_on(load.settle(done.is_ok().then_some(WATCHERS)));
    done.and(compared)
}

/// Causes one fault after another, for as long as the run lasts.
fn inflict(
    options: &Options,
    faults: Vec<Fault>,
    (report, world, runtime): (&Report, &mut World, &Handle),
) -> Result<()> {
    let (dice, lengths) = (Dice::new(options.seed).apart("faults"), options.lengths());
    let end = Instant::now() + options.length();
    let faults = possible(faults, world, report)?;
    let first = options.first();
    let mut hand = Hand { world, report, runtime, dice: dice.apart("instances"), lengths };
    for (number, fault) in order(first.clone(), faults, dice).enumerate() {
        let is_over = number >= first.len() && Instant::now() >= end;
        if is_over || report.is_violated() {
            break;
        }
        hand.run(fault)?;
    }
    Ok(())
}

/// The faults that are possible here.
fn possible(mut faults: Vec<Fault>, world: &World, report: &Report) -> Result<Vec<Fault>> {
    if !world.has_small_disks() {
        report.say("disk-full is left out: a disk of its own takes the rights of root");
        faults.retain(|fault| *fault != Fault::DiskFull);
    }
    ensure!(!faults.is_empty(), "none of these faults can be done here");
    Ok(faults)
}

/// The `first`, then the others once in some order, then each once in another, without end.
fn order(first: Vec<Fault>, mut faults: Vec<Fault>, mut dice: Dice) -> impl Iterator<Item = Fault> {
    let mut left: Vec<Fault> = faults.iter().filter(|fault| !first.contains(fault)).copied().collect();
    dice.shuffle(&mut left);
    let others = std::iter::repeat_with(move || {
        if left.is_empty() {
            dice.shuffle(&mut faults);
            left.clone_from(&faults);
        }
        left.pop().expect("there are some")
    });
    first.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: &[&str]) -> Options {
        Options { minutes: None, seed: 1, only: only.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn faults_are_chosen_by_name() {
        assert_eq!(options(&[]).faults(), Fault::all());
        let names: Vec<String> = options(&["etcd", "renew"]).faults().iter().map(ToString::to_string).collect();
        assert!(names.iter().all(|name| name.contains("etcd") || name.contains("renew")), "{names:?}");
        assert_eq!(names.len(), 8);
    }

    #[test]
    fn each_fault_comes_before_any_comes_again_and_a_seed_repeats_the_order() {
        let some = |count, seed| order(FIRST.into(), Fault::all(), Dice::new(seed)).take(count).collect::<Vec<_>>();
        let count = Fault::all().len();
        assert!(Fault::all().iter().all(|fault| some(count, 3).contains(fault)));
        assert_eq!(some(2 * count, 3), some(2 * count, 3));
        assert_ne!(some(count, 3), some(count, 4));
    }

    #[test]
    fn whatever_the_dice_say_a_gateway_is_replaced_and_killed_and_the_hub_goes() {
        for seed in 0..20 {
            let options = Options { seed, ..options(&[]) };
            let order: Vec<Fault> = order(options.first(), options.faults(), Dice::new(seed)).take(4).collect();
            let names: Vec<String> = order.iter().map(ToString::to_string).collect();
            assert_eq!(names, ["replace-gateway", "kill-gateway", "replace-tunnel-server", "silence"]);
        }
        assert_eq!(options(&["gateway"]).first(), FIRST[..2]);
        assert!(options(&["etcd"]).first().is_empty());
    }
}
