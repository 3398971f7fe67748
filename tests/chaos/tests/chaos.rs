//! One minute of chaos in the suite, as much as wanted by hand:
//! `cargo test -p chaos-tests --test chaos -- --minutes 60 --seed 1 --only gateway`.

use std::process::ExitCode;

use chaos_tests::programs;
use chaos_tests::run::{Options, run};
use clap::Parser;
use libtest_mimic::{Arguments, Failed, Trial};

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    harness: Arguments,
    /// How long faults follow one another (default: one minute, with short faults)
    #[arg(long, env = "CHAOS_MINUTES", value_name = "MINUTES")]
    minutes: Option<f64>,
    /// What chance follows (default: a new one for each run)
    #[arg(long, env = "CHAOS_SEED", value_name = "NUMBER")]
    seed: Option<u64>,
    /// Faults whose names contain this; repeatable
    #[arg(long, env = "CHAOS_ONLY", value_name = "FAULT", value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    if let Some(code) = programs::requested(std::env::args_os()) {
        return code;
    }
    let flags = Flags::parse();
    let seed = flags.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ since_the_epoch());
    let options = Options { minutes: flags.minutes, seed, only: flags.only };
    let trial = Trial::test("the ledger holds whatever dies", move || {
        run(&options).map_err(|error| Failed::from(format!("{error:#}")))
    });
    libtest_mimic::run(&flags.harness, vec![trial]).exit_code()
}

fn since_the_epoch() -> u64 {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    elapsed.as_secs()
}
