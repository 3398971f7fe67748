//! Tests that share the gateway, and tests that use it exclusively.

use std::sync::Arc;

use anyhow::Result;
pub(crate) use hub_tests::fixture::{Fixture, test as exclusive};
use hub_tests::testbed::Testbed;
use libtest_mimic::Trial;

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
