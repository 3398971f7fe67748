//! Measures the gateway and its tunnel beside others: same machine, same run, targets in turns.

mod args;
mod figure;
mod ground;
mod nginx;
mod run;
mod scenario;
mod tool;
mod upstream;
mod usage;
mod way;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.command {
        Command::Sink { socket } => upstream::sink::serve(socket),
        _ => run::run(&args),
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
