//! The controllers as a program of their own, beside a real hub.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use harness::program::Program;
use harness::usage::Tree;
use hub_tests::process::Process;
use hub_tests::tunnel::metric;
use hub_tests::{http, ports, wait};

use crate::testbed::{HubSide, Testbed};

/// Limit for the program to answer.
const START: Duration = Duration::from_secs(30);

/// Ended on drop.
pub struct Controllers {
    process: Process,
    /// Where they answer: ours for everybody, Open Cluster Management's by TLS, with a credential.
    admin: SocketAddr,
    is_ours: bool,
    /// Its processes, for their usage.
    pub tree: Tree,
}

// === impl Controllers ===

impl Controllers {
    /// Starts them with parts and more flags, as the hub's administrator and the only replica.
    pub fn start(testbed: &Testbed, side: &HubSide, parts: &str, more: &[String]) -> Result<Self> {
        Self::start_in(testbed, side, "default", parts, more)
    }

    /// The same, with its Secrets in `namespace`.
    pub fn start_in(testbed: &Testbed, side: &HubSide, namespace: &str, parts: &str, more: &[String]) -> Result<Self> {
        Self::start_as(testbed, &side.hub.server.kubectl().kubeconfig, namespace, parts, more)
    }

    /// The same as the user of `kubeconfig`.
    pub fn start_as(
        testbed: &Testbed,
        kubeconfig: &Path,
        namespace: &str,
        parts: &str,
        more: &[String],
    ) -> Result<Self> {
        let program = testbed.program(Program::Controllers)?;
        let admin = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
        let mut arguments = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--admin-listen={admin}"),
            format!("--enable={parts}"),
            format!("--secret-namespace={namespace}"),
            "--leader-elect=false".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        arguments.extend_from_slice(more);
        let process = Process::start("controllers", &program, arguments, testbed.directory())?;
        let tree = Tree::new([process.id()]);
        let mut controllers = Self { process, admin, is_ours: true, tree };
        controllers.wait_ready()?;
        Ok(controllers)
    }

    /// Open Cluster Management's, `program` called `name`, as the hub's administrator and the only
    /// replica, with more flags. They are stopped until [`Controllers::start_again`].
    pub fn of_ocm(
        testbed: &Testbed,
        side: &HubSide,
        (name, program): (&str, &Path),
        namespace: &str,
        more: &[String],
    ) -> Result<Self> {
        let admin = SocketAddr::from(([127, 0, 0, 1], ports::free()?));
        let mut arguments = vec![
            "controller".to_owned(),
            format!("--kubeconfig={}", side.hub.server.kubectl().kubeconfig.display()),
            format!("--namespace={namespace}"),
            format!("--listen={admin}"),
            "--disable-leader-election".to_owned(),
        ];
        arguments.extend_from_slice(more);
        // The other measured programs run with the settings of tests, as they did for the published
        // figures.
        let process = Process::start_as_shipped(name, program, arguments, testbed.directory())?;
        let tree = Tree::new([process.id()]);
        let mut controllers = Self { process, admin, is_ours: false, tree };
        controllers.stop()?;
        Ok(controllers)
    }

    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    fn wait_ready(&mut self) -> Result<()> {
        wait::until("the controllers to answer", START, || {
            self.process.check()?;
            if self.is_ours {
                return http::plain(self.admin, "/metrics").map(drop);
            }
            drop(TcpStream::connect(self.admin)?);
            Ok(())
        })
    }

    /// Ends them, and starts them again as they were.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    pub fn stop(&mut self) -> Result<()> {
        self.process.stop()?;
        // Its supervisor goes a moment before the sockets of a large program do.
        wait::until_true("its port to be free", START, || Ok(TcpStream::connect(self.admin).is_err()))
    }

    /// Starts them again after [`Controllers::stop`], as they were.
    pub fn start_again(&mut self) -> Result<()> {
        self.process.start_again()?;
        self.tree = Tree::new([self.process.id()]);
        self.wait_ready()
    }

    /// The sum of the metric's series.
    pub fn metric(&mut self, name: &str) -> Result<f64> {
        self.metric_of(name, "")
    }

    /// The same, for series with these labels.
    pub fn metric_of(&mut self, name: &str, labels: &str) -> Result<f64> {
        self.process.check()?;
        metric(self.admin, name, labels)
    }
}
