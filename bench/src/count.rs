//! Instructions per operation, counted by callgrind: the figure that does not move with the machine's load, and so the one to steer by.
//!
//! What is counted runs as it is shipped, under valgrind, in front of this process's clients and behind its members. Its counters are set to zero
//! before a load and read after it: starting, handshakes and warming up are not in the figure.

mod callgrind;
mod gateway;
mod profile;
mod record;
mod tunnel;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use self::callgrind::Counted;
use crate::args::Args;
use crate::ground::Ground;

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

/// One figure.
struct Case {
    /// `gateway-h2`.
    name: &'static str,
    /// What the figure is per: `request`.
    unit: &'static str,
    /// How many of them one round has.
    units: u64,
    /// Does so many.
    load: Load,
}

type Load = Box<dyn FnMut(u64) -> Result<()>>;

/// Programs under callgrind and what can be done with them.
struct Stage {
    programs: Vec<Counted>,
    cases: Vec<Case>,
}

/// Instructions per unit: the median of the rounds and how far they are apart.
#[derive(Clone, Copy, Debug)]
struct Figure {
    median: f64,
    /// Of the median, from the smallest to the largest.
    spread: f64,
}

/// What the command line asks for.
pub fn run(args: &Args, options: &Options) -> Result<()> {
    callgrind::require()?;
    let ground = Ground::new(args.programs.clone(), false)?;
    let mut figures = record::Figures::committed()?;
    let wanted =
        |name: &str| options.cases.is_empty() || options.cases.iter().any(|case| name.starts_with(case.as_str()));
    let stages: [(&[&str], fn(&Ground) -> Result<Stage>); 2] =
        [(&gateway::NAMES, gateway::stage), (&tunnel::NAMES, tunnel::stage)];
    let known = || stages.iter().flat_map(|(names, _)| names.iter());
    for case in &options.cases {
        let names = known().copied().collect::<Vec<_>>();
        ensure!(
            names.iter().any(|name| name.starts_with(case.as_str())),
            "no case {case:?}: there are {}",
            names.join(", ")
        );
    }
    for (names, start) in stages {
        if names.iter().any(|name| wanted(name)) {
            let mut stage = start(&ground)?;
            stage.cases.retain(|case| wanted(case.name));
            stage.count(args.rounds, options, &mut figures)?;
        }
    }
    if options.write { figures.write() } else { Ok(()) }
}

// === impl Stage ===

impl Stage {
    fn count(&mut self, rounds: usize, options: &Options, figures: &mut record::Figures) -> Result<()> {
        for case in &mut self.cases {
            let (figure, dumps) = case.count(&mut self.programs, rounds).with_context(|| case.name)?;
            say(&figures.compare(case.name, case.unit, figure));
            for dump in &dumps {
                if options.top > 0 {
                    say(&profile::top(dump, case.units, options.top, options.inclusive)?);
                }
                if let Some(directory) = &options.keep {
                    fs::create_dir_all(directory)?;
                    fs::copy(&dump.file, directory.join(format!("callgrind.{}.{}", case.name, dump.program)))?;
                }
            }
            figures.set(case.name, figure.median);
        }
        Ok(())
    }
}

// === impl Case ===

impl Case {
    /// The figure, and each program's counts of the last round.
    fn count(&mut self, programs: &mut [Counted], rounds: usize) -> Result<(Figure, Vec<callgrind::Dump>)> {
        (self.load)(self.units / 2)?; // what only the first ones pay for
        let (mut counts, mut dumps) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            programs.iter().try_for_each(Counted::zero)?;
            (self.load)(self.units)?;
            dumps = programs.iter_mut().map(Counted::dump).collect::<Result<Vec<_>>>()?;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            counts.push(dumps.iter().map(|dump| dump.instructions).sum::<u64>() as f64 / self.units as f64);
        }
        Ok((Figure::of(counts), dumps))
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

#[expect(clippy::print_stdout, reason = "for the person who called it")]
fn say(text: &str) {
    println!("{text}");
}
