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

/// The programs that have an image.
fn programs() -> impl Iterator<Item = Program> {
    Program::TRAINED.into_iter().chain([Program::Controllers])
}

fn build(directory: &Path) -> Result<()> {
    let trained = dist::build()?;
    let controllers = Program::Controllers;
    let plain = controllers.build_alone(Profile::Shipped)?;
    fs::create_dir_all(directory)?;
    for program in programs() {
        let built = if program == controllers { &plain } else { &trained };
        fs::copy(built.join(program.binary()), directory.join(program.binary()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCKERFILE: &str = include_str!("../../Dockerfile");

    #[test]
    fn the_dockerfile_calls_this_as_it_can_be_called() {
        let (_, words) = DOCKERFILE.split_once("--package dist --").expect("it builds with this");
        let words: Vec<_> =
            words.lines().next().expect("a line").split_whitespace().filter(|word| *word != "\\").collect();
        let args = Args::try_parse_from([&["dist"], &words[..]].concat()).expect("words that are known");
        assert!(DOCKERFILE.contains(&format!("\"{}/$program\"", args.directory.display())), "{args:?}");
    }

    #[test]
    fn the_dockerfile_makes_images_of_what_this_builds() {
        let mut expected: Vec<_> = programs().map(Program::binary).collect();
        expected.sort_unstable();
        let loops: Vec<_> = DOCKERFILE.split("for program in ").skip(1).collect();
        assert_eq!(loops.len(), 2, "{loops:?}");
        for list in loops {
            let mut list: Vec<_> = list.split(';').next().expect("a list").split_whitespace().collect();
            list.sort_unstable();
            assert_eq!(list, expected);
        }
    }
}
