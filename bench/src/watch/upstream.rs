//! The upstream of watches as a process.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::StatusCode;
use hub_tests::http::Client;
use hub_tests::wait;

use super::server::ECHO;
use crate::route::Destination;
use crate::stand_in::StandIn;

const START_LIMIT: Duration = Duration::from_secs(10);

/// [`super::server`] as another process.
pub struct Upstream(StandIn);

// === impl Upstream ===

impl Upstream {
    /// Starts it with files in `directory` and waits until it answers. `name`, unlike any other's,
    /// is the cluster's, too.
    pub fn start(directory: &Path, name: &'static str) -> Result<Self> {
        let mut upstream = Self(StandIn::start(directory, name, "serve-watches")?);
        upstream.wait_ready()?;
        Ok(upstream)
    }

    pub fn stand_in(&self) -> &StandIn {
        &self.0
    }

    /// The destination behind a [`crate::route::Route`].
    pub fn destination(&self) -> Destination<'_> {
        self.called(self.0.name)
    }

    /// The same under another cluster's name.
    pub fn called<'a>(&'a self, cluster: &'a str) -> Destination<'a> {
        let StandIn { address, authority, tree, .. } = &self.0;
        Destination { cluster, address: *address, authority, tree, probe: ECHO, upgrades: false }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let StandIn { address, authority, process, .. } = &mut self.0;
        let client = Client::new(*address, authority, None);
        wait::until("the upstream of watches", START_LIMIT, || {
            process.check()?;
            client.get(ECHO, &[])?.expect(StatusCode::OK)
        })
        .with_context(|| process.log_tail())?;
        Ok(())
    }
}
