//! The Helm charts: their renderings, what a hub accepts of them, and releases that are installed,
//! used, upgraded and removed.
//!
//! A separate binary from `hub`, because releases claim the API group that the gateway there
//! serves: this binary has its own hub, which the first test that needs it starts.

mod apart;
mod commands;
mod delivery;
mod dialects;
mod dry_run;
mod elsewhere;
mod fixture;
mod installed;
mod invariants;
mod kinds;
mod kubevela;
mod lifecycle;
mod matrix;
mod monitoring;
mod release;
mod renewal;
mod scaling;
mod schema;
mod tunnel;
mod upgrades;
mod works;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

use self::fixture::Fixture;

/// Two cores suffice for one helm each.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let fixture = Arc::new(Fixture::default());
    let trials = [
        lifecycle::trials(&fixture),
        kubevela::trials(&fixture),
        tunnel::trials(&fixture),
        apart::trials(&fixture),
        commands::trials(&fixture),
        renewal::trials(&fixture),
        dialects::trials(&fixture),
        dry_run::trials(&fixture),
        elsewhere::trials(&fixture),
        invariants::trials(&fixture),
        kinds::trials(&fixture),
        schema::trials(&fixture),
        scaling::trials(&fixture),
        monitoring::trials(&fixture),
        works::trials(&fixture),
        delivery::trials(&fixture),
        upgrades::trials(&fixture),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    fixture.close(conclusion.has_failed());
    conclusion.exit_code()
}
