//! The one [`Lab`] that all tests share, started by the first of them.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use hub_tests::lab::Lab;
use libtest_mimic::{Failed, Trial};

/// The lab, once somebody needs it.
#[derive(Default)]
pub(crate) struct Stage {
    lab: OnceLock<Result<Lab, String>>,
}

/// A test that shares the gateway with others.
pub(crate) fn test(
    stage: &Arc<Stage>,
    name: impl Into<String>,
    run: impl FnOnce(&Lab) -> Result<()> + Send + 'static,
) -> Trial {
    exclusive(stage, name, |lab| {
        let _in_use = lab.gateway.in_use();
        run(lab)
    })
}

/// A test that may stop the gateway.
pub(crate) fn exclusive(
    stage: &Arc<Stage>,
    name: impl Into<String>,
    run: impl FnOnce(&Lab) -> Result<()> + Send + 'static,
) -> Trial {
    let stage = Arc::clone(stage);
    Trial::test(name, move || stage.lab().and_then(run).map_err(|error| Failed::from(format!("{error:#}"))))
}

// === impl Stage ===

impl Stage {
    fn lab(&self) -> Result<&Lab> {
        let lab = self.lab.get_or_init(|| Lab::start().map_err(|error| format!("{error:#}")));
        lab.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))
    }

    /// Stops everything; after a failure the logs stay.
    #[allow(clippy::print_stderr, reason = "the place of the logs belongs to the output of a failed run")]
    pub(crate) fn close(self: Arc<Self>, failed: bool) {
        let Some(stage) = Arc::into_inner(self) else { return };
        if let Some(Ok(mut lab)) = stage.lab.into_inner()
            && failed
        {
            eprintln!("the logs of this run are in {}", lab.keep().display());
        }
    }
}
