//! Measures the gateway and its tunnel beside others: same machine, same run, targets in turns.

mod args;
mod figure;
mod ground;
mod run;
mod scenario;
mod tool;
mod upstream;
mod usage;
mod way;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

fn main() -> ExitCode {
    match run::run(&Args::parse()) {
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
