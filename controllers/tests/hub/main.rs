//! The controllers on real control planes: a hub with a gateway, and a member.

mod cluster_api;
mod fixture;
mod leaders;
mod monitoring;
mod names;
mod others;
mod page;
mod removal;
mod rights;
mod stillness;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

use self::fixture::Fixture;

/// Everything here waits for the same API servers.
const THREADS: usize = 3;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let fixture = Arc::new(Fixture::default());
    let trials = [
        cluster_api::trials(&fixture),
        leaders::trials(&fixture),
        monitoring::trials(&fixture),
        names::trials(&fixture),
        others::trials(&fixture),
        page::trials(&fixture),
        removal::trials(&fixture),
        rights::trials(&fixture),
        stillness::trials(&fixture),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    fixture.close(conclusion.has_failed());
    conclusion.exit_code()
}
