//! The one [`Testbed`] that all tests share, started by the first of them.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use hub_tests::testbed::Testbed;
use libtest_mimic::{Failed, Trial};

/// The testbed, once somebody needs it.
#[derive(Default)]
pub(crate) struct Fixture {
    testbed: OnceLock<Result<Testbed, String>>,
}

/// A test that shares the gateway with others.
pub(crate) fn test(
    fixture: &Arc<Fixture>,
    name: impl Into<String>,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    exclusive(fixture, name, |testbed| {
        let _in_use = testbed.gateway.in_use();
        run(testbed)
    })
}

/// A test that may stop the gateway.
pub(crate) fn exclusive(
    fixture: &Arc<Fixture>,
    name: impl Into<String>,
    run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
) -> Trial {
    let fixture = Arc::clone(fixture);
    Trial::test(name, move || fixture.testbed().and_then(run).map_err(|error| Failed::from(format!("{error:#}"))))
}

// === impl Fixture ===

impl Fixture {
    fn testbed(&self) -> Result<&Testbed> {
        let testbed = self.testbed.get_or_init(|| Testbed::start().map_err(|error| format!("{error:#}")));
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
