//! The controllers as a program of their own, beside a real hub.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use harness::program::Program;
use harness::usage::Tree;
use hub_tests::process::Process;
use hub_tests::{ports, wait};

use crate::testbed::{HubSide, Testbed};

/// For the program to answer.
const START: Duration = Duration::from_secs(30);

/// Ended on drop.
pub struct Controllers {
    process: Process,
    port: u16,
    /// What it uses.
    pub tree: Tree,
}

// === impl Controllers ===

impl Controllers {
    /// Starts them with one part, as the hub's administrator and the only replica.
    pub fn start(testbed: &Testbed, side: &HubSide, part: &str) -> Result<Self> {
        let program = testbed.program(Program::Controllers)?;
        let port = ports::free()?;
        let arguments = [
            format!("--kubeconfig={}", side.hub.server.kubectl().kubeconfig.display()),
            format!("--admin-listen=127.0.0.1:{port}"),
            format!("--enable={part}"),
            "--secret-namespace=default".to_owned(),
            "--leader-elect=false".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let mut process = Process::start("controllers", &program, arguments, testbed.directory())?;
        let tree = Tree::new([process.id()]);
        wait::until("the controllers to answer", START, || {
            process.check()?;
            read(port).map(drop)
        })?;
        Ok(Self { process, port, tree })
    }

    /// The sum of the series whose lines begin so.
    pub fn metric(&mut self, name: &str) -> Result<f64> {
        self.process.check()?;
        let text = read(self.port)?;
        let series = text.lines().filter(|line| line.starts_with(name));
        Ok(series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// What the metric is once it no longer moves for `pause`.
    pub fn settled(&mut self, name: &str, pause: Duration, limit: Duration) -> Result<f64> {
        let mut last = f64::NAN;
        let mut since = tokio::time::Instant::now();
        wait::until(&format!("{name} to rest"), limit, || {
            let now = self.metric(name)?;
            if now.to_bits() != last.to_bits() {
                (last, since) = (now, tokio::time::Instant::now());
            }
            ensure!(since.elapsed() >= pause, "it is {now}");
            Ok(now)
        })
    }
}

fn read(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("a head")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    Ok(body.to_owned())
}
