//! Who may be an agent: RBAC on the hub decides, for tokens and for client certificates, when a
//! link is made and for as long as it exists.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use hub_tests::follower;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::prelude::*;
use hub_tests::tunnel::{AgentCredential, AgentOptions, Tunnelled};
use kit::lines;
use kit::pki::{Authority, Issued};
use libtest_mimic::Trial;
use links::{Agents, AgentsConfig, Limits};
use net::tls::server::KeyPairFiles;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;
use tunnel::{ClusterName, Destination, Settings, Stream};

use crate::fixture::{Fixture, test};

/// Time for an agent to try (again), and for a server to notice. The hub's refusal is cached for 10
/// s, and a refused agent comes back after half a minute at most.
const LIMIT: Duration = Duration::from_mins(1);
/// How often the listener of [`Listener`] checks permissions again.
const RECHECK: Duration = Duration::from_millis(500);
/// Time within which a link ends after its permission is revoked, if the server follows the hub's
/// roles.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Time from a permission's end to the link's: the interval, the cache of the hub's answer (10 s),
/// and slack for a busy machine.
const REVOKED: Duration = Duration::from_secs(20);

/// A listener for agents that checks permissions more often than usual.
struct Listener {
    agents: Agents,
    runtime: Runtime,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "tunnel::an agent whose permission is taken away is cut off", |testbed| {
            cut_off(testbed, "revoked", RECHECK, REVOKED, |name| {
                testbed.hub.server.delete(&format!("clusterrolebinding {name}"))
            })
        }),
        test(fixture, "tunnel::an agent whose ServiceAccount is deleted is cut off", |testbed| {
            cut_off(testbed, "deleted", RECHECK, REVOKED, |name| {
                testbed.hub.server.delete(&format!("serviceaccount {name} -n {SECRET_NAMESPACE}"))
            })
        }),
        test(
            fixture,
            "tunnel::a permission that is taken away ends links at once, where roles can be followed",
            |testbed| {
                // The account that `Listener::start` creates.
                testbed.hub.allow_following("listener-at-once")?;
                cut_off(testbed, "at-once", AgentsConfig::RECHECK, AT_ONCE, |name| {
                    testbed.hub.server.delete(&format!("clusterrolebinding {name}"))
                })
            },
        ),
        test(
            fixture,
            "tunnel::an agent without permission is told which one it needs, and links once it has it",
            refused,
        ),
        test(fixture, "tunnel::an agent of one cluster is refused as another's", other_cluster),
        test(fixture, "tunnel::an agent's client certificate is a user of the hub's RBAC", certificate),
        test(
            fixture,
            "tunnel::an agent with a client certificate of a strange authority is refused",
            strange_certificate,
        ),
    ]
}

/// An agent of `cluster` for the testbed's tunnel-server.
pub(super) fn agent(testbed: &Testbed, cluster: &str, credential: AgentCredential) -> Result<AgentOptions> {
    let server = testbed.tunnelled()?.agent_address;
    Ok(agent_of(testbed, server, cluster, credential))
}

fn agent_of(testbed: &Testbed, server: SocketAddr, cluster: &str, credential: AgentCredential) -> AgentOptions {
    let authority = testbed.tunnel.serving_authority_file();
    AgentOptions::new(cluster, server, authority, testbed.member.server.address(), credential)
}

fn with_certificate(testbed: &Testbed, name: &str, identity: &Issued) -> Result<AgentCredential> {
    Ok(AgentCredential::Certificate(identity.write_to(&testbed.launcher().directory, name)?))
}

fn registrations(tunnelled: &Tunnelled, outcome: &str) -> Result<f64> {
    tunnelled.metric("tunnel_server_registrations_total", &format!("outcome=\"{outcome}\""))
}

fn is_linked(tunnelled: &Tunnelled, cluster: &str) -> Result<()> {
    ensure!(tunnelled.registry.is_linked(&ClusterName::parse(cluster)?), "{cluster} is not linked");
    Ok(())
}

/// Runs `start`, which starts an agent of `cluster` with the user `user`, and waits until it was
/// refused because it lacks the permission. Others may be refused at the same time: the log shows
/// whose refusal it was.
fn forbidden<T>(testbed: &Testbed, cluster: &str, user: &str, start: impl FnOnce() -> Result<T>) -> Result<T> {
    let tunnelled = testbed.tunnelled()?;
    let before = registrations(tunnelled, "forbidden")?;
    let started = start()?;
    wait::until_true("the refusal to be counted", LIMIT, || Ok(registrations(tunnelled, "forbidden")? > before))?;
    wait::until_true("the log to say which permission is missing", LIMIT, || {
        let log = testbed.log()?;
        let (its, theirs) = (format!("link cluster \"{cluster}\""), format!("user \"{user}\""));
        let words = [&*theirs, &*its, "needs \"create\" of \"clustergateways/tunnel\""];
        let mut lines = lines::with(&log, &[user, cluster]).into_iter().map(|line| line.replace("\\\"", "\""));
        Ok(lines.any(|line| words.iter().all(|word| line.contains(word))))
    })?;
    ensure!(is_linked(tunnelled, cluster).is_err(), "{cluster} is linked without permission");
    Ok(started)
}

fn account(name: &str) -> String {
    format!("system:serviceaccount:{SECRET_NAMESPACE}:{name}")
}

fn refused(testbed: &Testbed) -> Result<()> {
    let (cluster, tunnelled) = ("unpermitted", testbed.tunnelled()?);
    let name = &format!("agent-{cluster}");
    let token = testbed.hub.create_agent(name, &[])?;
    let credential = AgentCredential::token(testbed.launcher(), cluster, &token)?;
    let _agent = forbidden(testbed, cluster, &account(name), || agent(testbed, cluster, credential)?.start())?;
    let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": SECRET_NAMESPACE}]);
    testbed.hub.allow_agent(name, &account, &[cluster])?;
    wait::until("the agent's link", LIMIT, || is_linked(tunnelled, cluster))
}

fn other_cluster(testbed: &Testbed) -> Result<()> {
    let tunnelled = testbed.tunnelled()?;
    let token = testbed.hub.create_agent("agent-own", &["own"])?;
    let credential = AgentCredential::token(testbed.launcher(), "own", &token)?;
    let pretend = || agent(testbed, "foreign", credential.clone())?.start();
    let _pretender = forbidden(testbed, "foreign", &account("agent-own"), pretend)?;
    let _own = agent(testbed, "own", credential)?.start()?;
    wait::until("the link of its own cluster", LIMIT, || is_linked(tunnelled, "own"))
}

fn certificate(testbed: &Testbed) -> Result<()> {
    let (cluster, user, tunnelled) = ("certified", "agent-certified", testbed.tunnelled()?);
    let credential = with_certificate(testbed, user, &testbed.tunnel.agents.issue(&Leaf::client(user)))?;
    forbidden(testbed, cluster, user, || agent(testbed, cluster, credential.clone())?.start())?.stop()?;
    let subject = json!([{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]);
    testbed.hub.allow_agent(user, &subject, &[cluster])?;
    let _agent = agent(testbed, cluster, credential)?.start()?;
    wait::until("the agent's link", LIMIT, || is_linked(tunnelled, cluster))
}

fn strange_certificate(testbed: &Testbed) -> Result<()> {
    let (cluster, user, tunnelled) = ("strange", "agent-strange", testbed.tunnelled()?);
    let subject = json!([{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]);
    testbed.hub.allow_agent(user, &subject, &[cluster])?;
    let turned_away = || {
        Ok::<_, anyhow::Error>(registrations(tunnelled, "unauthenticated")? + registrations(tunnelled, "malformed")?)
    };
    let before = turned_away()?;
    let identity = Authority::new("tunnel-agents-ca").issue(&Leaf::client(user));
    let _agent = agent(testbed, cluster, with_certificate(testbed, user, &identity)?)?.start()?;
    wait::until_true("the refusal to be counted", LIMIT, || Ok(turned_away()? > before))?;
    ensure!(is_linked(tunnelled, cluster).is_err(), "it is linked with a strange certificate");
    Ok(())
}

/// Checks that a link and its streams end `within` that time after `end` was called with the name
/// of the agent's ServiceAccount.
fn cut_off(
    testbed: &Testbed,
    cluster: &str,
    recheck: Duration,
    within: Duration,
    end: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let name = format!("agent-{cluster}");
    let listener = Listener::start(testbed, &format!("listener-{cluster}"), recheck)?;
    let destination = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?; // the system accepts for it
    let destination = destination.local_addr().map(|address| (destination, address))?;
    let token = testbed.hub.create_agent(&name, &[cluster])?;
    let credential = AgentCredential::token(testbed.launcher(), cluster, &token)?;
    let agent = agent_of(testbed, listener.agents.address(), cluster, credential).allow(&destination.1.to_string());
    let _agent = agent.start()?;
    let (registry, cluster) = (listener.agents.registry(), ClusterName::parse(cluster)?);
    wait::until_true("the agent's link", LIMIT, || Ok(registry.is_linked(&cluster)))?;
    let mut stream = listener.open(&cluster, destination.1)?;
    // It survives some checks before it is cut.
    ensure!(listener.read(&mut stream, 4 * RECHECK).is_err(), "the stream ended too early");
    end(&name)?;
    let error = match listener.read(&mut stream, within).context("the stream goes on without permission")? {
        Ok(count) => bail!("{count} bytes instead of a reset"),
        Err(error) => error,
    };
    ensure!(error.kind() == std::io::ErrorKind::ConnectionReset, "{error}");
    // The agent comes back at once, and is refused.
    wait::until_true("the link's end", LIMIT, || Ok(!registry.is_linked(&cluster)))
}

// === impl Listener ===

impl Listener {
    fn start(testbed: &Testbed, name: &str, recheck: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(follower::client(&testbed.hub.create_reviewer(name)?))?;
        let serving = testbed.tunnel.serving_files();
        let config = AgentsConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            serving: KeyPairFiles { certificate: serving.certificate.clone(), private_key: serving.key.clone() },
            client_ca_file: None,
            hub_client_ca: false,
            settings: Settings::default(),
            drain_timeout: Duration::ZERO,
            recheck,
            limits: Limits::default(),
        };
        let hub = auth::HubClients { authentication: client.clone(), authorization: client };
        let metrics = &mut prometheus_client::registry::Registry::default();
        let agents = Agents::start(&config, Some(hub), runtime.handle(), metrics)?;
        Ok(Self { agents, runtime })
    }

    fn open(&self, cluster: &ClusterName, to: SocketAddr) -> Result<Stream> {
        let to = Destination::parse(&to.to_string())?;
        let open = self.agents.registry().open(cluster, &to, LIMIT);
        let (stream, _gauge) = self.runtime.block_on(open)?;
        Ok(stream)
    }

    /// The result of a read within `limit`; an error if there is none.
    fn read(&self, stream: &mut Stream, limit: Duration) -> Result<std::io::Result<usize>> {
        let read = async { tokio::time::timeout(limit, stream.read(&mut [0])).await };
        Ok(self.runtime.block_on(read)?)
    }
}
