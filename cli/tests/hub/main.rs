//! `kubectl clusters` on real control planes: a hub with a gateway, and members.

mod care;
mod chromium;
mod contexts;
mod dashboard;
mod expired;
mod fixture;
mod foreign;
mod get;
mod install;
mod interrupted;
mod join;
mod list;
mod mistakes;
mod pictures;
mod screens;
mod terminal;
mod tunnel;

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
        tunnel::trials(&fixture),
        mistakes::trials(&fixture),
        expired::trials(&fixture),
        interrupted::trials(&fixture),
        foreign::trials(&fixture),
        install::trials(&fixture),
        terminal::trials(&fixture),
        care::trials(&fixture),
        contexts::trials(&fixture),
        dashboard::trials(&fixture),
        pictures::trials(&fixture),
        list::trials(&fixture),
        get::trials(&fixture),
        join::trials(&fixture),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    fixture.close(conclusion.has_failed());
    conclusion.exit_code()
}
