//! Instructions per operation, counted by callgrind: the figure that does not move with the
//! machine's load, and so the one to steer by.
//!
//! The programs run as they are shipped, under valgrind, between clients and members of this
//! process. Their counters are set to zero before a load and read after it: starting, handshakes
//! and warming up are not in the figure.

mod callgrind;
mod figure;
mod operation;
mod profile;
mod record;
mod traced;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use harness::gateway::{self, callers};
use harness::program::{Given, Profile, Program};
use harness::{Case, Floor, Harness, tunnel};
use hub_tests::scratch::Scratch;

use crate::callgrind::{Counted, Dump};
use crate::figure::Figure;
use crate::traced::Traces;

/// Counts instructions per operation: of our programs, and of single operations of a request's
/// path. Needs valgrind
#[derive(Clone, Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(name = "count", args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    given: Given,
    /// How often to count each case
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Time single operations with the clock instead: needs no valgrind, and varies with the load
    #[arg(long, conflicts_with_all = ["write", "traced", "top", "inclusive", "keep"])]
    time: bool,
    /// Cases to count, by prefix of their names [default: all]
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Show this many functions with their own cost
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    top: usize,
    /// Show functions with their cost including callees
    #[arg(long)]
    inclusive: bool,
    /// Keep callgrind's files here, for kcachegrind and the like
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Write these figures to bench/instructions.json
    #[arg(long)]
    write: bool,
    /// Fail if a figure is more than this many per cent above the committed one
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["write", "traced", "time"])]
    check: Option<f64>,
    /// Have the gateway trace every request, to a collector in this process
    #[arg(long, conflicts_with = "write")]
    traced: bool,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// What is run under callgrind
    #[command(hide = true)]
    Operate { operation: String, count: u64 },
}

/// The options, and the results so far.
struct Counting<'a> {
    options: &'a Options,
    floor: Floor<'a>,
    figures: record::Figures,
    /// Cases whose figures are too far above the committed ones.
    above: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    net::process::raise_open_files(); // for the programs started here, too
    let outcome = match &options.command {
        Some(Command::Operate { operation, count }) => operation::operate(operation, *count),
        None => run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "for the person who called it")]
            {
                eprintln!("count: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Counts or times, as the command line asks.
fn run(options: &Options) -> Result<()> {
    if options.time {
        return time(options);
    }
    callgrind::require()?;
    let scratch = Scratch::create()?;
    let program = |program: Program| program.path(&options.given, || Program::build(Profile::Counted));
    let traces = options.traced.then(Traces::start).transpose()?;
    let arguments = traces.as_ref().map(Traces::arguments).unwrap_or_default();
    let floor = Floor { directory: scratch.path(), program: &program, gateway: &arguments };
    let mut counting = Counting { options, floor, figures: record::Figures::committed()?, above: Vec::new() };
    let operations = operation::names();
    let whole = gateway::NAMES.iter().chain(&callers::NAMES).chain(&tunnel::NAMES).copied();
    options.know(whole.chain(operations.iter().map(String::as_str)))?;
    counting.whole(&gateway::NAMES, gateway::harness)?;
    counting.whole(&callers::NAMES, callers::harness)?;
    counting.whole(&tunnel::NAMES, tunnel::harness)?;
    for name in operations {
        if options.wants(&name) {
            let (figure, units, dump) =
                operation::count(counting.floor.directory, &name).with_context(|| name.clone())?;
            counting.tell(&name, "operation", figure, units, &[dump])?;
        }
    }
    ensure!(counting.above.is_empty(), "too far above the committed figures: {}", counting.above.join(", "));
    if options.write { counting.figures.write() } else { Ok(()) }
}

/// Times the selected single operations.
fn time(options: &Options) -> Result<()> {
    let operations = operation::names();
    options.know(operations.iter().map(String::as_str))?;
    for name in operations.iter().filter(|name| options.wants(name)) {
        let figure = operation::time(name, options.rounds)?;
        say(&format!("{name:<20} {:>12.1} ns, ±{:.0} %", figure.median, figure.spread * 50.0));
    }
    Ok(())
}

// === impl Options ===

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|case| name.starts_with(case.as_str()))
    }

    /// Everything asked for has to be there.
    fn know<'n>(&self, known: impl Iterator<Item = &'n str>) -> Result<()> {
        let known = known.collect::<Vec<_>>();
        for case in &self.cases {
            let is_known = known.iter().any(|name| name.starts_with(case.as_str()));
            ensure!(is_known, "no case {case:?}: there are {}", known.join(", "));
        }
        Ok(())
    }
}

// === impl Counting ===

impl Counting<'_> {
    /// Counts the selected ones of `names`, if any, in front of whole programs.
    fn whole(&mut self, names: &[&str], start: fn(&Floor<'_>) -> Result<Harness<Counted>>) -> Result<()> {
        if !names.iter().any(|name| self.options.wants(name)) {
            return Ok(());
        }
        let Harness { mut programs, mut cases } = start(&self.floor)?;
        cases.retain(|case| self.options.wants(case.name));
        for case in &mut cases {
            let (figure, dumps) = count(case, &mut programs, self.options.rounds).with_context(|| case.name)?;
            self.tell(case.name, case.unit, figure, case.units, &dumps)?;
        }
        Ok(())
    }

    fn tell(&mut self, name: &str, unit: &str, figure: Figure, units: u64, dumps: &[Dump]) -> Result<()> {
        say(&self.figures.compare(name, unit, figure));
        if self.options.check.is_some_and(|most| self.figures.above(name, figure).is_some_and(|above| above > most)) {
            self.above.push(name.to_owned());
        }
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

/// The figure of `case`, and each program's counts of the last round.
fn count(case: &mut Case, programs: &mut [Counted], rounds: usize) -> Result<(Figure, Vec<Dump>)> {
    (case.load)(case.units / 2)?; // the first ones cost more
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
