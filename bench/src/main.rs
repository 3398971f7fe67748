//! Measures the gateway and its tunnel beside others: same machine, same run, targets in turns.

mod aggregated;
mod args;
mod caller;
mod child;
mod clusters;
mod contender;
mod controllers;
mod delivery;
mod figure;
mod given;
mod h2load;
mod hub_objects;
mod joining;
mod latency;
mod metrics;
mod nginx;
mod outcome;
mod proxies;
mod registration;
mod report;
mod route;
mod run;
mod scenario;
mod size;
mod stand_in;
mod statistics;
mod testbed;
mod tool;
mod tunnel;
mod upgrade;
mod upstream;
mod watch;
mod wrk;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};

/// The documentation of this checkout.
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

fn main() -> ExitCode {
    let args = Args::parse();
    net::process::raise_open_files(); // for the programs started here, too
    let outcome = match &args.command {
        Command::Sink { socket } => upstream::sink::serve(socket),
        Command::Destination { address } => tunnel::destination::serve(*address),
        Command::ServeWatches(options) => watch::server::run(options),
        Command::ServeMembers(options) => delivery::server::run(options),
        Command::ServeUpgrades(options) => upgrade::server::run(options),
        Command::List => run::list(),
        Command::Publish => report::publish(&args.out(), Path::new(DOCUMENTS)),
        Command::All | Command::Run { .. } | Command::Smoke { .. } => run::run(&args),
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
