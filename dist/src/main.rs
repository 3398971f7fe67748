//! Builds our programs as images have them, optimized for what they do most, and puts them into a
//! directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use harness::program::{Profile, Program};

/// Builds the programs as in images: those that requests go through (gateway, tunnel-server,
/// tunnel-agent) with profile-guided optimization, the controllers without. Takes many minutes
#[derive(Debug, Parser)]
#[command(name = "dist")]
struct Args {
    /// Directory for the programs
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

fn main() -> ExitCode {
    match build(&Args::parse().directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "for the person who called it")]
            {
                eprintln!("dist: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build(directory: &Path) -> Result<()> {
    let trained = dist::build()?;
    let controllers = Program::Controllers;
    let plain = controllers.build_alone(Profile::Shipped)?;
    fs::create_dir_all(directory)?;
    for program in Program::TRAINED {
        fs::copy(trained.join(program.binary()), directory.join(program.binary()))?;
    }
    fs::copy(plain.join(controllers.binary()), directory.join(controllers.binary()))?;
    Ok(())
}
