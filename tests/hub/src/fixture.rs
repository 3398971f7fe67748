//! The one [`Testbed`] that all tests of a binary share: started by the first of them, stopped when
//! the last has ended.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::testbed::Testbed;

/// Everything here waits for the same API servers; more at a time only makes single tests slower.
const THREADS: usize = 3;

/// The testbed, once somebody needs it.
pub struct Fixture {
    start: fn() -> Result<Testbed>,
    testbed: OnceLock<Result<Testbed, String>>,
}

/// A test.
pub fn test(
    fixture: &Arc<Fixture>,
    name: impl Into<String>,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    let fixture = Arc::clone(fixture);
    Trial::test(name, move || fixture.testbed().and_then(run).map_err(|error| Failed::from(format!("{error:#}"))))
}

// === impl Fixture ===

impl Fixture {
    /// Of a testbed that `start` prepares.
    pub fn new(start: fn() -> Result<Testbed>) -> Arc<Self> {
        Arc::new(Self { start, testbed: OnceLock::new() })
    }

    /// Runs these of its tests that the command line asks for, and stops everything.
    pub fn run(self: Arc<Self>, trials: impl IntoIterator<Item = Vec<Trial>>) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(THREADS);
        let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
        self.close(conclusion.has_failed());
        conclusion.exit_code()
    }

    fn testbed(&self) -> Result<&Testbed> {
        let testbed = self.testbed.get_or_init(|| (self.start)().map_err(|error| format!("{error:#}")));
        testbed.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))
    }

    /// Stops everything; after a failure the logs stay.
    #[allow(clippy::print_stderr, reason = "the place of the logs belongs to the output of a failed run")]
    fn close(self: Arc<Self>, failed: bool) {
        let Some(fixture) = Arc::into_inner(self) else { return };
        if let Some(Ok(mut testbed)) = fixture.testbed.into_inner()
            && failed
        {
            eprintln!("the logs of this run are in {}", testbed.keep().display());
        }
    }
}
