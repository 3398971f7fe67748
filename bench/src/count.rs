//! Instructions per operation, counted by callgrind: the figure that does not move with the machine's load, and so the one to steer by.
//!
//! What is counted runs as it is shipped, under valgrind, in front of this process's clients and behind its members. Its counters are set to zero
//! before a load and read after it: starting, handshakes and warming up are not in the figure.

mod callgrind;
mod micro;
mod profile;
mod record;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use self::callgrind::{Counted, Dump};
pub use self::micro::operate;
use crate::given::Programs;
use crate::ground::Ground;
use crate::program::Profile;
use crate::stage::{Case, Stage, gateway, tunnel};
use crate::trained;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which, by the beginning of their names [default: all]
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Show this many functions with what each spends itself
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    top: usize,
    /// Show functions with what they and all they call spend
    #[arg(long)]
    inclusive: bool,
    /// Keep callgrind's files here, for kcachegrind and the like
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Make these figures the committed ones (bench/instructions.json)
    #[arg(long)]
    write: bool,
}

/// Instructions per unit: the median of the rounds and how far they are apart.
#[derive(Clone, Copy, Debug)]
struct Figure {
    median: f64,
    /// Of the median, from the smallest to the largest.
    spread: f64,
}

/// What is asked for and what came of it.
struct Counting<'a> {
    options: &'a Options,
    rounds: usize,
    ground: Ground,
    figures: record::Figures,
}

/// What the command line asks for.
pub fn run(rounds: usize, given: &Programs, options: &Options) -> Result<()> {
    callgrind::require()?;
    let mut ground = Ground::new(given.clone(), false, trained::build)?;
    ground.profile = Profile::Release; // counted again and again between two changes
    let mut counting = Counting { options, rounds, ground, figures: record::Figures::committed()? };
    let operations = micro::names();
    counting
        .check(gateway::NAMES.iter().chain(&tunnel::NAMES).copied().chain(operations.iter().map(String::as_str)))?;
    counting.whole(&gateway::NAMES, gateway::stage)?;
    counting.whole(&tunnel::NAMES, tunnel::stage)?;
    for name in operations {
        if counting.wants(&name) {
            let (figure, units, dump) = micro::count(&counting.ground, &name).with_context(|| name.clone())?;
            counting.tell(&name, "operation", figure, units, &[dump])?;
        }
    }
    if options.write { counting.figures.write() } else { Ok(()) }
}

// === impl Counting ===

impl Counting<'_> {
    fn wants(&self, name: &str) -> bool {
        self.options.cases.is_empty() || self.options.cases.iter().any(|case| name.starts_with(case.as_str()))
    }

    /// Everything asked for has to be there.
    fn check<'n>(&self, known: impl Iterator<Item = &'n str>) -> Result<()> {
        let known = known.collect::<Vec<_>>();
        for case in &self.options.cases {
            let is_known = known.iter().any(|name| name.starts_with(case.as_str()));
            ensure!(is_known, "no case {case:?}: there are {}", known.join(", "));
        }
        Ok(())
    }

    /// Those of `names` that are asked for, if any, in front of whole programs.
    fn whole(&mut self, names: &[&str], start: fn(&Ground) -> Result<Stage<Counted>>) -> Result<()> {
        if !names.iter().any(|name| self.wants(name)) {
            return Ok(());
        }
        let Stage { mut programs, mut cases } = start(&self.ground)?;
        cases.retain(|case| self.wants(case.name));
        for case in &mut cases {
            let (figure, dumps) = count(case, &mut programs, self.rounds).with_context(|| case.name)?;
            self.tell(case.name, case.unit, figure, case.units, &dumps)?;
        }
        Ok(())
    }

    fn tell(&mut self, name: &str, unit: &str, figure: Figure, units: u64, dumps: &[Dump]) -> Result<()> {
        say(&self.figures.compare(name, unit, figure));
        for dump in dumps {
            if self.options.top > 0 {
                say(&profile::top(dump, units, self.options.top, self.options.inclusive)?);
            }
            if let Some(directory) = &self.options.keep {
                fs::create_dir_all(directory)?;
                fs::copy(&dump.file, directory.join(format!("callgrind.{name}.{}", dump.program)))?;
            }
        }
        self.figures.set(name, figure.median);
        Ok(())
    }
}

// === impl Figure ===

impl Figure {
    fn of(mut counts: Vec<f64>) -> Self {
        counts.sort_by(f64::total_cmp);
        let median = counts[counts.len() / 2];
        Self { median, spread: (counts[counts.len() - 1] - counts[0]) / median }
    }
}

/// The figure of `case`, and each program's counts of the last round.
fn count(case: &mut Case, programs: &mut [Counted], rounds: usize) -> Result<(Figure, Vec<Dump>)> {
    (case.load)(case.units / 2)?; // what only the first ones pay for
    let (mut counts, mut dumps) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        programs.iter().try_for_each(Counted::zero)?;
        (case.load)(case.units)?;
        dumps = programs.iter_mut().map(Counted::dump).collect::<Result<Vec<_>>>()?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        counts.push(dumps.iter().map(|dump| dump.instructions).sum::<u64>() as f64 / case.units as f64);
    }
    Ok((Figure::of(counts), dumps))
}

#[expect(clippy::print_stdout, reason = "for the person who called it")]
fn say(text: &str) {
    println!("{text}");
}
