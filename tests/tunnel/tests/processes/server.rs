//! A server that is killed and started again, or asked to end.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use kit::exposition;
use kit::wait::{WAIT, becomes, free_port, timely};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tunnel_tests::testbed::CLUSTER;
use tunnel_tests::{AgentSpec, Caller, Frontend, Site, Testbed, admin};

use crate::process::{A_SECOND, Process, assert_broken, assert_echoes, assert_reset};

const LINKED: Duration = Duration::from_secs(20);

/// A server that is a process, on ports that stay the same.
struct Served {
    testbed: Rc<Testbed>,
    ports: [u16; 3],
    directory: tempfile::TempDir,
    process: Process,
}

// === impl Served ===

impl Served {
    async fn start(flags: &[String]) -> Self {
        Self::on(Rc::new(Testbed::builder().servers(0).start().await), flags).await
    }

    /// With the certificates of `testbed`.
    async fn on(testbed: Rc<Testbed>, flags: &[String]) -> Self {
        let ports = [free_port().await, free_port().await, free_port().await];
        let directory = tempfile::tempdir().expect("a temporary directory");
        let uds = directory.path().join("frontend.sock");
        let process = Process::server(&testbed.server_arguments(ports, &uds, flags));
        let served = Self { testbed, ports, directory, process };
        becomes(LINKED, "a server that answers", async || served.ask("/livez").await.is_some_and(|it| it.0 == 200))
            .await;
        served
    }

    fn restart(&mut self) {
        self.process = Process::server(&self.testbed.server_arguments(self.ports, &self.uds(), &[]));
    }

    fn uds(&self) -> PathBuf {
        self.directory.path().join("frontend.sock")
    }

    fn at(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    fn agents(&self) -> SocketAddr {
        Self::at(self.ports[0])
    }

    fn caller(&self, kind: Frontend) -> Caller {
        Caller::new(kind, &self.testbed.pki, self.uds(), Self::at(self.ports[1]), Some(CLUSTER))
    }

    async fn ask(&self, path: &str) -> Option<(u16, String)> {
        admin::get(Self::at(self.ports[2]), path).await.ok()
    }

    async fn links(&self) -> u64 {
        self.ask("/metrics").await.map_or(0, |(_, text)| exposition::sum(&text, "tunnel_server_links", ""))
    }

    /// An agent of [`CLUSTER`] with two links here, and as many to each of `others`.
    async fn agent(&self, others: &[&Self]) -> tunnel_agent::Agent {
        let mut spec = AgentSpec::new(CLUSTER);
        spec.elsewhere.push(self.agents());
        spec.elsewhere.extend(others.iter().map(|other| other.agents()));
        let agent = self.testbed.start_agent(&spec);
        for served in others.iter().copied().chain([self]) {
            becomes(LINKED, "two links", async || served.links().await == 2).await;
        }
        agent
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_killed_in_mid_transfer_is_no_clean_end_and_its_agents_are_back_in_two_seconds() {
    timely(2 * A_SECOND, "the end of all transfers in one second, the agent in two", killed_in_mid_transfer).await;
}

/// Returns the time until the agent was back, or twice the time until all transfers ended if that
/// is more.
async fn killed_in_mid_transfer() -> Duration {
    let mut served = Served::start(&[]).await;
    let agent = served.agent(&[]).await;
    let flood = Site::flood().await;
    let mut transfers = Vec::new();
    for kind in [Frontend::Tls, Frontend::H2] {
        let mut tunnel = served.caller(kind).must(&flood.authority()).await;
        tunnel.read_exact(&mut vec![0; 1 << 20]).await.expect("the transfer runs");
        transfers.push(tunnel);
    }
    served.process.signal("KILL");
    let start = Instant::now();
    for tunnel in &mut transfers {
        assert_broken(tunnel).await;
    }
    let ended = start.elapsed();
    kit::wait::eventually(WAIT, || flood.open() == 0).await;
    served.restart();
    becomes(WAIT, "a server that answers", async || served.ask("/livez").await.is_some()).await;
    let start = Instant::now();
    becomes(WAIT, "the agent's links", async || served.links().await == 2).await;
    let back = start.elapsed();
    let target = served.testbed.api_server.authority();
    assert_echoes(&mut served.caller(Frontend::Uds).must(&target).await).await;
    // None twice.
    assert_eq!(served.links().await, 2);
    tokio::task::block_in_place(|| drop(agent));
    back.max(2 * ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_to_end_is_not_ready_first_and_lets_its_streams_end() {
    let leaving = Served::start(&[]).await;
    let staying = Served::on(leaving.testbed.clone(), &[]).await;
    let agent = leaving.agent(&[&staying]).await;
    let target = leaving.testbed.api_server.authority();
    let mut open = Vec::new();
    for kind in Frontend::ALL {
        open.push(leaving.caller(kind).must(&target).await);
    }
    let fresh = [leaving.caller(Frontend::Tls), leaving.caller(Frontend::Uds)];
    leaving.process.signal("TERM");
    becomes(WAIT, "a server that is not ready", async || {
        leaving.ask("/readyz").await.is_some_and(|(status, _)| status == 503)
    })
    .await;
    assert_eq!(leaving.ask("/livez").await.map(|(status, _)| status), Some(200), "not dead, only leaving");
    for caller in fresh {
        // Turned away, or no longer listened to, in either case before any stream ends. It is not
        // ready a moment before.
        becomes(WAIT, "new streams to be turned away", async || caller.open(&target).await.is_err()).await;
    }
    for kind in Frontend::ALL {
        open.push(staying.caller(kind).must(&target).await);
    }
    for tunnel in &mut open {
        assert_echoes(tunnel).await;
    }
    drop(open);
    let Served { process, testbed, .. } = leaving;
    let (status, took) = process.ended(WAIT).await;
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "of thirty seconds: {took:?}");
    tokio::task::block_in_place(|| drop((agent, testbed, staying)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_to_end_resets_what_is_left_at_its_deadline() {
    let served = Served::start(&["--drain-timeout=2s".to_owned()]).await;
    let agent = served.agent(&[]).await;
    let mut open = served.caller(Frontend::H2).must(&served.testbed.api_server.authority()).await;
    served.process.signal("TERM");
    becomes(WAIT, "a server that is not ready", async || {
        served.ask("/readyz").await.is_some_and(|(status, _)| status == 503)
    })
    .await;
    assert_echoes(&mut open).await;
    assert_reset(&mut open).await;
    let Served { process, testbed, .. } = served;
    let (_, took) = process.ended(WAIT).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    tokio::task::block_in_place(|| drop((agent, testbed)));
}
