//! A leader that is frozen for longer than its Lease writes nothing when it continues.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::Value;
use tokio::time::Instant;

use super::{LEADER, TAKE_OVER};
use crate::fixture::{
    SOON, apply, create_refused, kubeconfig_secret, member_kubeconfig, namespace, versions, wait_secret,
};
use crate::others::value;
use crate::program::Program;

/// Less than the time for which a leader leads without a renewal: within it, the second stays
/// leader although it is frozen.
const STILL_ITS: Duration = Duration::from_secs(7);
/// Refused sources, each with an Event. Of these, 20 are sent per second: most still wait when
/// their leader is frozen.
const REFUSED: u32 = 400;
const OBJECTS: &str = "cluster_gateway_controllers_source_objects";

/// The names of one run.
struct Place<'a> {
    testbed: &'a Testbed,
    fleet: String,
    clusters: String,
    first: String,
    second: String,
}

/// On a busy machine, the second may be frozen for too long and lose its Lease: then the test runs
/// again with other names.
pub fn frozen(testbed: &Testbed) -> Result<()> {
    let mut runs = 0..;
    wait::timely("the second stands still within its Lease", STILL_ITS, || {
        Place::new(testbed, runs.next().unwrap_or_default()).frozen()
    })
}

// === impl Place ===

impl<'a> Place<'a> {
    fn new(testbed: &'a Testbed, run: u32) -> Self {
        let [fleet, clusters, first, second] =
            ["fleet", "clusters", "first", "second"].map(|what| format!("frozen-{what}-{run}"));
        Self { testbed, fleet, clusters, first, second }
    }

    /// Returns how long the second was frozen. If that was too long, the rest is not checked.
    fn frozen(&self) -> Result<Duration> {
        let testbed = self.testbed;
        let mut first = self.leader()?;
        let mut second = self.program(&self.second)?;
        second.wait_to_say("another leads")?;

        // The second writes while the first is frozen, so what the first last saw is outdated.
        create_refused(testbed, &self.fleet, REFUSED)?;
        let refused = || Ok(first.metric(OBJECTS, "refused")? >= f64::from(REFUSED));
        wait::until_true("the refusals", SOON, refused)?;
        first.process.signal("STOP")?;
        let told = testbed.hub.server.names(&format!("events.events.k8s.io -n {}", self.fleet))?.len();
        ensure!(told < REFUSED as usize / 2, "{told} of {REFUSED} Events were sent: too few wait");
        apply(testbed, &[self.source("one", "meanwhile"), self.source("two", "meanwhile")])?;
        // Requests of the first that were in flight when it was frozen have arrived.
        let mark = testbed.audit.mark()?;
        wait::until_true("the second to lead", TAKE_OVER, || Ok(second.log()?.contains("leading")))?;
        self.wait_token("one", "meanwhile")?;
        wait_secret(testbed, &self.clusters, "two")?;
        let written = self.versions()?;

        // Now the second is frozen, well within its Lease, and the first continues with everything
        // that is left to do: earlier changes, and new ones that no other replica writes.
        second.process.signal("STOP")?;
        let still = Instant::now();
        apply(testbed, &[self.source("one", "after"), self.source("three", "after")])?;
        first.process.signal("CONT")?;
        first.wait_to_say("leading no longer")?;
        wait::until_true("that the first does not lead", SOON, || Ok(first.metric(LEADER, "")? < 1.0))?;
        let now = self.versions()?;
        second.process.signal("CONT")?;
        let stood = still.elapsed();
        ensure!(now == written, "the first wrote: {written:?} {now:?}");
        if stood < STILL_ITS {
            self.goes_on(&mut first, &second, mark)?;
        }
        Ok(stood)
    }

    /// The second writes everything, and the first stands by.
    fn goes_on(&self, first: &mut Program, second: &Program, mark: usize) -> Result<()> {
        self.wait_token("one", "after")?;
        wait_secret(self.testbed, &self.clusters, "three")?;
        ensure!(!second.log()?.contains("leading no longer"), "the second lost it");
        first.wait_to_say("another leads")?;
        first.process.check()?;
        let by_first = self.testbed.audit.writes((&self.clusters, &self.first), mark)?;
        ensure!(by_first.is_empty(), "the first wrote: {by_first:?}");
        let by_second = self.testbed.audit.writes((&self.clusters, &self.second), mark)?;
        let of_secrets = by_second.iter().filter(|write| write.contains("/secrets/")).count();
        ensure!(of_secrets == 4, "each change is one write: {by_second:?}");
        Ok(())
    }

    /// Starts the first replica, which leads and has written one cluster.
    fn leader(&self) -> Result<Program> {
        let [fleet, clusters] = [&self.fleet, &self.clusters].map(|name| namespace(name));
        apply(self.testbed, &[fleet, clusters, self.source("one", "before")])?;
        let mut first = self.program(&self.first)?;
        first.wait_to_say("leading")?;
        wait_secret(self.testbed, &self.clusters, "one")?;
        Ok(first)
    }

    fn program(&self, name: &str) -> Result<Program> {
        let watched = format!("--watch-namespaces={}", self.fleet);
        Program::with_account(self.testbed, name, &self.clusters, &["--enable=kubeconfig", &watched])
    }

    fn source(&self, name: &str, token: &str) -> Value {
        kubeconfig_secret(&self.fleet, name, &member_kubeconfig(self.testbed, token))
    }

    fn wait_token(&self, name: &str, token: &str) -> Result<()> {
        wait::until(&format!("the token of {name}"), SOON, || {
            let found = value(self.testbed, &self.clusters, name, "token")?;
            ensure!(found == token, "{found}");
            Ok(())
        })
    }

    /// The versions of all clusters' Secrets.
    fn versions(&self) -> Result<Vec<String>> {
        versions(&self.testbed.hub.server, &format!("secrets -n {}", self.clusters))
    }
}
