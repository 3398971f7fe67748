//! Upgraded connections, as `kubectl exec` has them: an upstream that echoes, a client that waits
//! for the echo.

pub mod caller;
pub mod server;

use anyhow::Result;

use crate::route::Destination;
use crate::stand_in::StandIn;
use crate::testbed::Testbed;

/// Under which gateways know the upstream.
const CLUSTER: &str = "echo";
/// Answered with 200 at once.
const PROBE: &str = "/version";
/// The target of an upgrade request.
pub const EXEC: &str = "/api/v1/namespaces/default/pods/echo/exec?command=cat&stdin=true&stdout=true";

/// The upstream; ended on drop.
pub struct Echo(StandIn);

// === impl Echo ===

impl Echo {
    /// Starts it as a process of its own. The start of a way to it waits until it answers.
    pub fn start(testbed: &Testbed) -> Result<Self> {
        StandIn::start(testbed.directory(), CLUSTER, "serve-upgrades").map(Self)
    }

    /// The destination behind a way.
    pub fn destination(&self) -> Destination<'_> {
        let StandIn { address, authority, tree, .. } = &self.0;
        Destination { cluster: CLUSTER, address: *address, authority, tree, probe: PROBE, upgrades: true }
    }
}
