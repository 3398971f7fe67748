//! The whole product on real control planes of this machine: a hub and a member run from
//! Kubernetes' own programs, the gateway behind the hub's aggregator, the member registered by a
//! Secret, and by another one that says no address: there it is reached through a tunnel-server and
//! an agent.
//!
//! The arrangement is the one that the project's tests use ([`hub_tests::testbed`]). Everything
//! listens on 127.0.0.1 and ends with this process; its files are readable by their owner only and
//! go when [`Real`] goes.

mod report;
mod session;
mod steps;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use hub_tests::{
    hub::MemberSecret,
    kubectl::Kubectl,
    testbed::{CLUSTER, Route, Testbed},
    tunnel::{AgentCredential, AgentOptions, CLUSTER_TUNNEL},
};
use secrecy::SecretString;
use tokio::time::Instant;
use tunnel_server::Server;

pub use self::{
    report::RealReport,
    session::{Ending, Session},
    steps::Step,
};
use demo::{agent::Lifeline, kubeconfig::Kubeconfig};

/// The pod that is there from the start, in the namespace `default` of the member.
const POD: &str = "web";
/// Output of its container before the first reader.
const GREETING: &str = "level=info msg=\"listening\" port=8080\n";
/// A user of the hub with every right on it.
const OPERATOR: &str = "operator";
/// The agent's ServiceAccount on the hub.
const AGENT: &str = "tunnel-agent";
/// A user of the hub without rights.
const STRANGER: &str = "stranger";

/// A running hub, member and gateway. Dropping it ends all of them and blocks until they are gone.
pub struct Real {
    /// The agent through which the member is reached without an address.
    pub lifeline: Lifeline,
    /// The tunnel-server that it links to. Before the control planes: it asks the hub.
    pub tunnel_server: Server,
    /// Control planes and gateway.
    pub testbed: Testbed,
    /// kubectl with a kubeconfig that has the contexts `member` (through hub and gateway),
    /// `tunnelled` (and agent), `direct` and `hub`.
    pub kubectl: Kubectl,
    /// Time from the start of the first program until the hub called the gateway available and the
    /// member's pod ran.
    pub ready_after: Duration,
}

// === impl Real ===

impl Real {
    /// Builds the programs that are missing, starts everything and waits until it is ready. Blocks;
    /// needs no runtime.
    pub fn start() -> Result<Self> {
        let started = Instant::now();
        let testbed = Testbed::start()?;
        testbed.member.run_pod("default", POD, GREETING).context("the member runs no pod")?;
        let (tunnel_server, lifeline) = tunnel(&testbed)?;
        let kubeconfig = testbed.directory("demo")?.join("kubeconfig");
        contexts(&testbed)?.write(&kubeconfig).context("cannot write the kubeconfig")?;
        let kubectl = Kubectl { kubeconfig, ..testbed.kubectl(Route::Hub) };
        Ok(Self { lifeline, tunnel_server, testbed, kubectl, ready_after: started.elapsed() })
    }

    /// The file that is the log of the pod's container.
    pub fn log(&self) -> PathBuf {
        self.testbed.member.container("default", POD).join("main.log")
    }
}

/// A tunnel-server, an agent that links the member to it with a token of the hub, and the Secret
/// that registers it so.
fn tunnel(testbed: &Testbed) -> Result<(Server, Lifeline)> {
    let (tunnel, hub) = (&testbed.tunnel, &testbed.hub);
    let server = tunnel.start_server("tunnel-server", hub, &tunnel.frontend_flags(tunnel.frontend_address()))?;
    let token = hub.create_agent(AGENT, &[CLUSTER_TUNNEL])?;
    let credential = AgentCredential::token(hub.server.launcher(), AGENT, &token)?;
    let (authority, api_server) = (tunnel.serving_authority_file(), testbed.member.server.address());
    let agent = AgentOptions::new(CLUSTER_TUNNEL, server.agent_address(), authority, api_server, credential);
    let lifeline = Lifeline::start(Box::new(move || agent.start()))?;
    let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).behind_tunnel();
    hub.register_member(CLUSTER_TUNNEL, &secret)?;
    Ok((server, lifeline))
}

/// The ways to the member, and to the hub itself.
fn contexts(testbed: &Testbed) -> Result<Kubeconfig> {
    let (hub, member) = (&testbed.hub.server, &testbed.member.server);
    let operator = hub.service_account_token("default", OPERATOR)?;
    hub.kubectl().ok(&format!(
        "create clusterrolebinding {OPERATOR} --clusterrole cluster-admin --serviceaccount default:{OPERATOR}"
    ))?;
    let stranger = hub.service_account_token("default", STRANGER)?;
    let [proxy, tunnelled] = [CLUSTER, CLUSTER_TUNNEL].map(|cluster| hub.url() + &Testbed::proxy_path(cluster));
    let users =
        [("tester", &testbed.token), (OPERATOR, &operator), (STRANGER, &stranger), ("direct", &testbed.member_token)];
    let config = users
        .into_iter()
        .fold(Kubeconfig::default(), |config, (name, token)| config.user(name, &SecretString::from(token.as_str())));
    let (hub_authority, member_authority) = (hub.authority().root_pem(), member.authority().root_pem());
    Ok(config
        .context(CLUSTER, &proxy, &hub_authority, "tester")
        .context(CLUSTER_TUNNEL, &tunnelled, &hub_authority, "tester")
        .context("direct", &member.url(), &member_authority, "direct")
        .context("hub", &hub.url(), &hub_authority, OPERATOR))
}
