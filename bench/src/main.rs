//! Measures the gateway and its tunnel beside others: same machine, same run, targets in turns.

mod args;
mod figure;
mod ground;
mod nginx;
mod report;
mod run;
mod scenario;
mod statistics;
mod tool;
mod upstream;
mod usage;
mod way;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};

/// Of this checkout.
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.command {
        Command::Sink { socket } => upstream::sink::serve(socket),
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
