//! Both charts and `kubectl clusters` on real nodes.
//!
//! A binary with a main of its own: it goes into namespaces first, and there starts the nodes once
//! for all tests, which follow one another because each needs the hub for itself. Its other names
//! are the programs under test.

mod fixture;
mod walk;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;
use node_tests::{lab, namespaces, programs};

use self::fixture::Fixture;

/// What images have.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(code) = programs::requested() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let place = place(arguments.list);
    let fixture = Arc::new(Fixture::default());
    let trials = [walk::trials(&fixture)];
    let trials = trials.into_iter().flatten().map(|trial| trial.with_ignored_flag(place.is_err())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    fixture.close(conclusion.has_failed());
    conclusion.exit_code()
}

/// Returns inside, or where nothing is to be run, or with the reason why nothing can be.
#[allow(clippy::print_stderr, reason = "why tests are ignored belongs to the output of a run")]
fn place(only_lists: bool) -> anyhow::Result<()> {
    if only_lists || namespaces::inside().is_some() {
        return Ok(());
    }
    let entered = namespaces::possible().and_then(|()| {
        lab::tools()?;
        namespaces::enter(std::env::args_os().skip(1))
    });
    entered.inspect_err(|error| eprintln!("no tests on nodes: {error:#}"))
}
