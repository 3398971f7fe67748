//! Every certificate and every authority is replaced while streams are open: none of them notices.
//!
//! In the order operators do it: both authorities are believed, then the certificates change, then
//! the old authority goes.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use kit::client::Client;
use kit::pki::{ALPN_H1, Authority, Leaf, Trust, client_config};
use kit::wait::becomes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tunnel_tests::testbed::CLUSTER;
use tunnel_tests::{AgentSpec, Frontend, Testbed, Tunnel};

/// Files are looked at every few seconds.
const TAKEN_OVER: Duration = Duration::from_secs(30);

/// An authority in the place of another.
struct Change<'a> {
    file: &'a Path,
    old: &'a Authority,
    new: Authority,
}

// === impl Change ===

impl<'a> Change<'a> {
    fn new(file: &'a Path, old: &'a Authority) -> Self {
        Self { file, old, new: Authority::new("new") }
    }

    fn believe_both(&self) {
        std::fs::write(self.file, self.old.root_pem() + &self.new.root_pem()).expect("a writable directory");
    }

    fn believe_the_new(&self) {
        std::fs::write(self.file, self.new.root_pem()).expect("a writable directory");
    }
}

/// Whether `listener` shows a certificate that `authority` signed.
async fn shows(listener: SocketAddr, authority: &Authority) -> bool {
    let client = Client::new(listener, Trust::Authority(authority), None);
    let Err(error) = client.tls(ALPN_H1).await else { return true };
    // The frontends' listener wants a certificate, but only after it has shown its own.
    let shown = ![ErrorKind::ConnectionRefused, ErrorKind::TimedOut].contains(&error.kind());
    shown && !error.to_string().contains("UnknownIssuer")
}

async fn assert_all_echo(open: &mut [Tunnel]) {
    for tunnel in open {
        tunnel.write_all(b"on").await.expect("written");
        tunnel.flush().await.expect("written");
        let mut heard = [0; 2];
        tunnel.read_exact(&mut heard).await.expect("no stream is dropped");
        assert_eq!(&heard, b"on");
    }
}

fn usable_links(testbed: &Testbed) -> Vec<u64> {
    let clusters = testbed.server(0).registry().list();
    let links = clusters.iter().flat_map(|cluster| &cluster.agents).flat_map(|agent| &agent.links);
    links.filter(|link| link.usable).map(|link| link.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_everything_drops_no_stream() {
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).start().await;
    let (pki, target) = (&testbed.pki, testbed.api_server.authority());
    let mut open = Vec::new();
    for caller in testbed.callers() {
        open.push(caller.must(&target).await);
    }
    let serving = Change::new(&pki.serving_ca, &pki.serving);
    let agents = Change::new(&pki.agents_ca, &pki.agents);
    let frontends = Change::new(&pki.frontends_ca, &pki.frontends);
    for change in [&serving, &agents, &frontends] {
        change.believe_both();
    }
    // Taken over when a frontend of the new authority gets through.
    let newcomer = frontends.new.issue(&Leaf::client("gateway"));
    let admitted = || pki.frontend_tls_as(Some(&newcomer), ALPN_H1);
    becomes(TAKEN_OVER, "a frontend of the new authority", async || {
        testbed.caller(Frontend::Tls).with_tls(admitted()).open(&target).await.is_ok()
    })
    .await;
    assert_all_echo(&mut open).await;

    let before = usable_links(&testbed);
    let directory = pki.directory();
    let agent = Leaf::client(format!("system:tunnel-agent:{CLUSTER}"));
    agents.new.issue(&agent).write_to(directory, &format!("agent-{CLUSTER}")).expect("a writable directory");
    for stem in ["agent-listener", "frontend-listener"] {
        serving.new.issue(&Leaf::server(stem)).write_to(directory, stem).expect("a writable directory");
    }
    let server = testbed.server(0);
    for listener in [server.agent_address(), server.frontend_address().expect("a listener")] {
        let what = format!("the new certificate at {listener}");
        becomes(TAKEN_OVER, what, async || shows(listener, &serving.new).await).await;
    }
    becomes(TAKEN_OVER, "links with the agent's new certificate", async || {
        let now = usable_links(&testbed);
        now.len() == 2 && now.iter().all(|id| !before.contains(id))
    })
    .await;
    assert_all_echo(&mut open).await;

    serving.believe_the_new();
    frontends.believe_the_new();
    becomes(TAKEN_OVER, "the end of the old authority", async || {
        testbed.caller(Frontend::Tls).open(&target).await.is_err()
    })
    .await;
    let tls = client_config(Trust::Authority(&serving.new), Some(&newcomer), ALPN_H1);
    open.push(testbed.caller(Frontend::Tls).with_tls(tls).must(&target).await);
    assert_all_echo(&mut open).await;
}
