//! Start and end of programs: the limit of open files, errors of `main`, signals, and the wait for
//! a drain.

mod signals;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Handle;

use self::signals::{until_signalled, watch_signals};
use crate::runtime::EndedEarly;
use crate::words;

pub use self::signals::Signals;

/// Time after the drain's timeout for work that has not ended.
const AFTER_DRAIN: Duration = Duration::from_secs(5);

/// The drain took longer than its timeout, or ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("draining did not end in time")]
pub struct NotDrained;

/// Raises the soft limit of open files and sockets to the hard one, as every Go program does at its
/// start (`os/rlimit.go`): the usual 1,024 exists for programs that use `select`, and each watch,
/// stream and client is a socket. Returns the limit in force; `None` means no limit.
///
/// If the system refuses, the limit stays as it is, because it may be enough.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// The whole `main` of a program: raises the limit of open files, and prints an error of `run` to
/// standard error after the program's name, with its causes if `{:#}` shows them.
pub fn main<E: Display>(program: &str, run: impl FnOnce() -> Result<(), E>) -> ExitCode {
    raise_open_files();
    exit_code(program, run())
}

fn exit_code<E: Display>(program: &str, outcome: Result<(), E>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    #[expect(clippy::print_stderr, reason = "logs may not be set up, and the operator must see why nothing starts")]
    {
        eprintln!("{program}: {}", words::plain(&format!("{error:#}")));
    }
    ExitCode::FAILURE
}

/// A program's whole life: `start`, then a wait for SIGTERM or SIGINT on `runtime`, then `stop`,
/// which drains. A second signal ends the process at once, after `last`.
///
/// # Errors
///
/// Returns the errors of `start` and `stop`. Also fails if signals cannot be watched.
pub fn run<P, E>(
    runtime: &Handle,
    start: impl FnOnce() -> Result<P, E>,
    stop: impl FnOnce(P) -> Result<(), E>,
    last: impl FnOnce() + Send + 'static,
) -> Result<(), E>
where
    E: From<io::Error> + From<EndedEarly>,
{
    // Before anything else is started: a signal during the start must neither be lost nor end the
    // process at once.
    let signals = watch_signals(runtime)?;
    tracing::debug!(limit = ?getrlimit(Resource::Nofile).current, "open files");
    let program = start()?;
    until_signalled(runtime, signals, last)?;
    stop(program)
}

/// Runs `draining` on `runtime` and blocks until it has ended, for `patience` and a moment more.
pub fn drained<F>(runtime: &Handle, draining: F, patience: Duration) -> Result<F::Output, NotDrained>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (report, ended) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        let _ = report.send(draining.await); // there may be no waiter left
    });
    ended.recv_timeout(patience + AFTER_DRAIN).map_err(|_| NotDrained)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{BackgroundRuntime, builder};

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn what_drained_is_told_and_a_panic_is_not_waited_for() {
        let runtime = BackgroundRuntime::start(builder(1), "test", LONG).unwrap();
        assert_eq!(drained(runtime.handle(), async { true }, LONG), Ok(true));
        let panics = async { panic!("as no drain should") };
        assert_eq!(
            drained::<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>(runtime.handle(), Box::pin(panics), LONG),
            Err(NotDrained)
        );
        assert_eq!(runtime.end(LONG), Ok(()));
    }

    #[test]
    fn signals_need_a_runtime_that_runs() {
        let runtime = BackgroundRuntime::start(builder(1), "test", LONG).unwrap();
        assert!(watch_signals(runtime.handle()).is_ok());
        assert_eq!(runtime.end(LONG), Ok(()));
        assert!(watch_signals(runtime.handle()).is_err());
    }

    #[test]
    fn every_program_raises_the_soft_limit_of_open_files_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        let usual = Some(hard.map_or(1_024, |hard| hard.min(1_024)));
        setrlimit(Resource::Nofile, Rlimit { current: usual, maximum: hard }).unwrap();
        let mut seen = usual;
        main("test", || {
            seen = getrlimit(Resource::Nofile).current;
            Ok::<_, String>(())
        });
        assert_eq!(seen, hard);
        assert_eq!(raise_open_files(), hard);
    }
}
