//! The one [`Testbed`] that all tests of a binary share: the first test starts it, and it is
//! stopped after the last.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::testbed::Testbed;
use crate::turns::{self, Turns};

/// Default limit of concurrent tests. All of them wait for the same API servers, so more would only
/// make each test slower.
const THREADS: usize = 3;
/// How many of the slowest tests are listed after a run.
const SLOWEST: usize = 12;

/// The testbed, from the first test that needs it.
pub struct Fixture {
    start: fn() -> Result<Testbed>,
    threads: usize,
    testbed: OnceLock<Result<Testbed, String>>,
    turns: Arc<Turns>,
    /// The number of tests.
    count: AtomicUsize,
    /// How long each test took, without the start of the testbed and without waits for other tests.
    took: Mutex<Vec<(Duration, String)>>,
}

/// A test.
pub fn test(
    fixture: &Arc<Fixture>,
    name: impl Into<String>,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    let (fixture, name) = (Arc::clone(fixture), name.into());
    let number = fixture.count.fetch_add(1, Ordering::Relaxed);
    Trial::test(name.clone(), move || {
        let _turn = fixture.turns.begin(number);
        let testbed = fixture.testbed().map_err(|error| Failed::from(format!("{error:#}")))?;
        let begin = Instant::now();
        let outcome = run(testbed).map_err(|error| Failed::from(format!("{error:#}")));
        fixture.took.lock().push((begin.elapsed().saturating_sub(turns::waited()), name));
        outcome
    })
}

// === impl Fixture ===

impl Fixture {
    /// A fixture whose testbed `start` prepares.
    pub fn new(start: fn() -> Result<Testbed>) -> Arc<Self> {
        Self::with_threads(start, THREADS)
    }

    /// The same with this many concurrent tests: more where most of them wait for a clock.
    pub fn with_threads(start: fn() -> Result<Testbed>, threads: usize) -> Arc<Self> {
        Arc::new(Self {
            start,
            threads,
            testbed: OnceLock::new(),
            turns: Arc::default(),
            count: AtomicUsize::default(),
            took: Mutex::default(),
        })
    }

    /// Runs those of the tests that the command line selects, and stops everything.
    pub fn run(self: Arc<Self>, trials: impl IntoIterator<Item = Vec<Trial>>) -> ExitCode {
        let mut arguments = Arguments::from_args();
        let trials: Vec<Trial> = trials.into_iter().flatten().collect();
        let at_once = arguments.test_threads.unwrap_or(self.threads);
        self.turns.open(at_once);
        // One thread per test. Most of them wait, so a test that waits for another keeps none from
        // running.
        arguments.test_threads = Some(if at_once > 1 { trials.len().max(1) } else { 1 });
        let conclusion = libtest_mimic::run(&arguments, trials);
        self.tell_slowest();
        self.close(conclusion.has_failed());
        conclusion.exit_code()
    }

    fn testbed(&self) -> Result<&Testbed> {
        let testbed = self.testbed.get_or_init(|| (self.start)().map_err(|error| format!("{error:#}")));
        testbed.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))
    }

    #[allow(clippy::print_stderr, reason = "where the time of a run went")]
    fn tell_slowest(&self) {
        let mut took = std::mem::take(&mut *self.took.lock());
        took.sort_unstable_by(|one, other| other.cmp(one));
        for (time, name) in took.iter().take(SLOWEST) {
            eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
        }
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
