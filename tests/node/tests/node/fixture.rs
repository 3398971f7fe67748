//! The one [`Testbed`] that all tests share, started by the first of them.

use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};
use libtest_mimic::{Failed, Trial};
use node_tests::family::Family;
use node_tests::testbed::Testbed;
use parking_lot::Mutex;

use crate::readme::{self, Installed};

/// The testbed, and the README's installation on it, each made when first needed.
#[derive(Default)]
pub(crate) struct Fixture {
    testbed: OnceLock<Result<Testbed, String>>,
    installed: OnceLock<Result<Installed, String>>,
}

/// A test with a testbed of its own, which may begin beside the test before it.
#[derive(Clone)]
pub(crate) struct Apart {
    run: fn() -> Result<()>,
    begun: Arc<Mutex<Option<JoinHandle<Result<()>>>>>,
}

/// A test on the shared testbed.
pub(crate) fn test(
    fixture: &Arc<Fixture>,
    name: &str,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    let fixture = Arc::clone(fixture);
    Trial::test(name, move || {
        let testbed = fixture.testbed().map_err(|error| Failed::from(format!("{error:#}")))?;
        run(testbed).map_err(|error| {
            testbed.save_logs();
            Failed::from(format!("{error:#}"))
        })
    })
}

/// A test that has a testbed of its own.
pub(crate) fn trial(name: &str, apart: Apart) -> Trial {
    Trial::test(name, move || apart.end().map_err(|error| Failed::from(format!("{error:#}"))))
}

/// A test on the README's installation.
pub(crate) fn installed(
    fixture: &Arc<Fixture>,
    name: &str,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    let of = Arc::clone(fixture);
    test(fixture, name, move |testbed| of.installed(testbed).and_then(|_| run(testbed)))
}

/// The test that removes the README's installation.
pub(crate) fn removed(fixture: &Arc<Fixture>, name: &str) -> Trial {
    let of = Arc::clone(fixture);
    test(fixture, name, move |testbed| of.installed(testbed)?.remove(testbed))
}

// === impl Apart ===

impl Apart {
    pub(crate) fn new(run: fn() -> Result<()>) -> Self {
        Self { run, begun: Arc::default() }
    }

    /// Begins now, in a thread of its own.
    pub(crate) fn begin(&self) {
        *self.begun.lock() = Some(thread::spawn(self.run));
    }

    /// Waits for its end, or does all of it if it has not begun.
    fn end(&self) -> Result<()> {
        let begun = self.begun.lock().take();
        begun.map_or_else(self.run, |begun| begun.join().map_err(|_| anyhow!("it panicked"))?)
    }
}

// === impl Fixture ===

impl Fixture {
    fn installed(&self, testbed: &Testbed) -> Result<&Installed> {
        let installed = self.installed.get_or_init(|| readme::follow(testbed).map_err(|error| format!("{error:#}")));
        installed.as_ref().map_err(|error| anyhow!("the README cannot be followed: {error}"))
    }

    fn testbed(&self) -> Result<&Testbed> {
        let testbed = self.testbed.get_or_init(|| Testbed::start(Family::V4).map_err(|error| format!("{error:#}")));
        testbed.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))
    }

    /// Stops everything; after a failure the logs stay.
    #[allow(clippy::print_stderr, reason = "the place of the logs belongs to the output of a failed run")]
    pub(crate) fn close(self: Arc<Self>, failed: bool) {
        let Some(fixture) = Arc::into_inner(self) else { return };
        if let Some(Ok(mut testbed)) = fixture.testbed.into_inner()
            && failed
        {
            eprintln!("the logs of this run are in {}", testbed.keep().display());
        }
    }
}
