//! Measures the gateway and its tunnel beside others: same machine, same run, targets in turns.

mod aggregated;
mod args;
mod caller;
mod child;
mod clusters;
mod contender;
mod count;
mod figure;
mod given;
mod ground;
mod h2load;
mod latency;
mod nginx;
mod outcome;
mod program;
mod proxies;
mod report;
mod run;
mod scenario;
mod stage;
mod stand_in;
mod statistics;
mod tool;
mod trained;
mod tunnel;
mod upgrade;
mod upstream;
mod usage;
mod watch;
mod way;
mod wrk;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use crate::args::{Args, Command};
use crate::program::Program;

/// Of this checkout.
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// Our programs as images have them, copied to `directory`.
fn build(directory: &Path) -> Result<()> {
    let built = trained::build()?;
    fs::create_dir_all(directory)?;
    for program in Program::ALL {
        fs::copy(built.join(program.binary()), directory.join(program.binary()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    net::descriptors::raise(); // for the programs started here, too
    let outcome = match &args.command {
        Command::Sink { socket } => upstream::sink::serve(socket),
        Command::Count(options) => count::run(args.rounds, &args.programs, options),
        Command::Operate { operation, count } => count::operate(operation, *count),
        Command::Destination { address } => tunnel::destination::serve(*address),
        Command::ServeWatches(options) => watch::server::run(options),
        Command::ServeUpgrades(options) => upgrade::server::run(options),
        Command::Build { directory } => build(directory),
        Command::List => run::list(),
        Command::Publish => report::publish(&args.out(), Path::new(DOCUMENTS)),
        Command::All | Command::Run { .. } | Command::Smoke => run::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "for the person who called it")]
            {
                eprintln!("bench: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
