//! The one [`Lab`] that all tests share, started by the first of them.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use libtest_mimic::{Failed, Trial};
use node_tests::family::Family;
use node_tests::lab::Lab;

use crate::readme::{self, Installed};

/// The lab, and what the README makes of it, once somebody needs them.
#[derive(Default)]
pub(crate) struct Fixture {
    lab: OnceLock<Result<Lab, String>>,
    installed: OnceLock<Result<Installed, String>>,
}

/// A test.
pub(crate) fn test(fixture: &Arc<Fixture>, name: &str, run: impl FnOnce(&Lab) -> Result<()> + Send + 'static) -> Trial {
    let fixture = Arc::clone(fixture);
    Trial::test(name, move || {
        let lab = fixture.lab().map_err(|error| Failed::from(format!("{error:#}")))?;
        run(lab).map_err(|error| {
            lab.save_logs();
            Failed::from(format!("{error:#}"))
        })
    })
}

/// A test that has a lab of its own.
pub(crate) fn trial(name: &str, run: fn() -> Result<()>) -> Trial {
    Trial::test(name, move || run().map_err(|error| Failed::from(format!("{error:#}"))))
}

/// A test on what the README makes.
pub(crate) fn installed(
    fixture: &Arc<Fixture>,
    name: &str,
    run: impl FnOnce(&Lab) -> Result<()> + Send + 'static,
) -> Trial {
    let of = Arc::clone(fixture);
    test(fixture, name, move |lab| of.installed(lab).and_then(|_| run(lab)))
}

/// The test of its removal.
pub(crate) fn removed(fixture: &Arc<Fixture>, name: &str) -> Trial {
    let of = Arc::clone(fixture);
    test(fixture, name, move |lab| of.installed(lab)?.remove(lab))
}

// === impl Fixture ===

impl Fixture {
    fn installed(&self, lab: &Lab) -> Result<&Installed> {
        let installed = self.installed.get_or_init(|| readme::follow(lab).map_err(|error| format!("{error:#}")));
        installed.as_ref().map_err(|error| anyhow!("the README cannot be followed: {error}"))
    }

    fn lab(&self) -> Result<&Lab> {
        let lab = self.lab.get_or_init(|| Lab::start(Family::V4).map_err(|error| format!("{error:#}")));
        lab.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))
    }

    /// Stops everything; after a failure the logs stay.
    #[allow(clippy::print_stderr, reason = "the place of the logs belongs to the output of a failed run")]
    pub(crate) fn close(self: Arc<Self>, failed: bool) {
        let Some(fixture) = Arc::into_inner(self) else { return };
        if let Some(Ok(mut lab)) = fixture.lab.into_inner()
            && failed
        {
            eprintln!("the logs of this run are in {}", lab.keep().display());
        }
    }
}
