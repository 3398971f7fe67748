//! The controllers as a program of their own, beside a real hub.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use harness::program::Program;
use harness::usage::Tree;
use hub_tests::process::Process;
use hub_tests::tunnel::metric;
use hub_tests::{http, ports, wait};

use crate::testbed::{HubSide, Testbed};

/// For the program to answer.
const START: Duration = Duration::from_secs(30);

/// Ended on drop.
pub struct Controllers {
    process: Process,
    admin: SocketAddr,
    /// What it uses.
    pub tree: Tree,
}

// === impl Controllers ===

impl Controllers {
    /// Starts them with one part, as the hub's administrator and the only replica.
    pub fn start(testbed: &Testbed, side: &HubSide, part: &str) -> Result<Self> {
        let program = testbed.program(Program::Controllers)?;
        let admin = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
        let arguments = [
            format!("--kubeconfig={}", side.hub.server.kubectl().kubeconfig.display()),
            format!("--admin-listen={admin}"),
            format!("--enable={part}"),
            "--secret-namespace=default".to_owned(),
            "--leader-elect=false".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let mut process = Process::start("controllers", &program, arguments, testbed.directory())?;
        let tree = Tree::new([process.id()]);
        wait::until("the controllers to answer", START, || {
            process.check()?;
            http::plain(admin, "/metrics").map(drop)
        })?;
        Ok(Self { process, admin, tree })
    }

    /// The sum of the metric's series.
    pub fn metric(&mut self, name: &str) -> Result<f64> {
        self.process.check()?;
        metric(self.admin, name, "")
    }

    /// Waits until the metric no longer moves for `pause`.
    pub fn settled(&mut self, name: &str, pause: Duration, limit: Duration) -> Result<()> {
        let mut last = None;
        let mut since = tokio::time::Instant::now();
        wait::until(&format!("{name} to rest"), limit, || {
            let now = self.metric(name)?;
            if last != Some(now) {
                (last, since) = (Some(now), tokio::time::Instant::now());
            }
            ensure!(since.elapsed() >= pause, "it is {now}");
            Ok(())
        })
    }
}
