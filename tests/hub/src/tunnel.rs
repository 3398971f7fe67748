//! A tunnel of the product between the hub and a member: a tunnel-server that asks the hub, a
//! gateway with an embedded tunnel-server, and an agent for each. All of them are in this process.
//!
//! Files and ports are chosen when the run begins ([`Tunnel::prepare`]), because the gateway needs
//! them at its start; the first test that needs the programs starts them ([`Tunnelled::start`]).

mod agent;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kit::pki::{Authority, Leaf, PemFiles};
use links::Registry;
use parking_lot::Mutex;
use tunnel_agent::Agent;
use tunnel_server::Server;

pub use self::agent::{AgentCredential, AgentOptions, Joining};
use crate::control_plane::Launcher;
use crate::http;
use crate::hub::{Hub, MemberSecret};
use crate::member::Member;
use crate::ports;
use crate::product::Product;

/// The hub's name of the member behind the tunnel-server.
pub const CLUSTER_TUNNEL: &str = "tunnelled";
/// The hub's name of the member behind the gateway with an embedded tunnel-server.
pub const CLUSTER_EMBEDDED: &str = "embedded";

/// Time for links to be made and for the member's API server to answer through them.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the programs wait for streams when they are stopped: there is no client left to wait
/// for.
const DRAIN: &str = "--drain-timeout=1s";

/// Keys, certificates and ports of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    /// Signs the certificates of both listeners of the tunnel-server.
    pub serving: Authority,
    /// Signs the agents' client certificates.
    pub agents: Authority,
    /// Signs the frontends' client certificates.
    pub frontends: Authority,
    files: Files,
    frontend_port: u16,
    launcher: Launcher,
}

#[derive(Debug)]
struct Files {
    serving_authority: PathBuf,
    serving: PemFiles,
    agents_authority: PathBuf,
    frontends_authority: PathBuf,
    /// A frontend's certificate: the gateway's, and the egress selectors'.
    frontend: PemFiles,
}

/// The running programs. Ended on drop.
pub struct Tunnelled {
    /// A gateway that agents link to directly; the hub does not know it.
    pub embedded: Product,
    /// The tunnel-server's listening address for agents.
    pub agent_address: SocketAddr,
    /// The clusters that are linked to the tunnel-server.
    pub registry: Arc<Registry>,
    admin: SocketAddr,
    running: Mutex<(Vec<Agent>, Server)>,
}

// === impl Tunnel ===

impl Tunnel {
    /// Creates files and chooses ports.
    pub fn prepare(launcher: &Launcher) -> Result<Self> {
        let directory = &launcher.directory;
        let authority = |name: &str| Authority::new(&format!("tunnel-{name}-ca"));
        let (serving, agents, frontends) = (authority("server"), authority("agents"), authority("frontends"));
        let files = Files {
            serving_authority: serving.write_to(directory, "tunnel-server-ca")?,
            serving: serving.issue(&Leaf::server("tunnel-server")).write_to(directory, "tunnel-server")?,
            agents_authority: agents.write_to(directory, "tunnel-agents-ca")?,
            frontends_authority: frontends.write_to(directory, "tunnel-frontends-ca")?,
            frontend: frontends.issue(&Leaf::client("frontend")).write_to(directory, "tunnel-frontend")?,
        };
        Ok(Self { serving, agents, frontends, files, frontend_port: ports::free()?, launcher: launcher.clone() })
    }

    /// A gateway's flags for the tunnel-server. It is named by a host name, so that more than one
    /// address may have to be tried.
    pub fn gateway_flags(&self) -> Vec<String> {
        let Files { serving_authority, frontend, .. } = &self.files;
        vec![
            "--proxy-host=localhost".to_owned(),
            format!("--proxy-port={}", self.frontend_port),
            format!("--proxy-ca-cert={}", serving_authority.display()),
            format!("--proxy-cert={}", frontend.certificate.display()),
            format!("--proxy-key={}", frontend.key.display()),
        ]
    }

    /// The tunnel-server's listening address for frontends over TLS.
    pub fn frontend_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.frontend_port))
    }

    /// The PEM file with [`Tunnel::serving`]'s certificate.
    pub fn serving_authority_file(&self) -> &Path {
        &self.files.serving_authority
    }

    /// The PEM file with [`Tunnel::agents`]' certificate.
    pub fn agents_authority_file(&self) -> &Path {
        &self.files.agents_authority
    }

    /// The PEM file with [`Tunnel::frontends`]' certificate.
    pub fn frontends_authority_file(&self) -> &Path {
        &self.files.frontends_authority
    }

    /// A certificate that frontends may present, and its key.
    pub fn frontend(&self) -> &PemFiles {
        &self.files.frontend
    }

    /// The certificate of both listeners, and its key.
    pub fn serving_files(&self) -> &PemFiles {
        &self.files.serving
    }

    /// Starts a tunnel-server named `name` with `more` flags and no other frontends than those in
    /// it. Its account on the hub has the same name.
    pub fn start_server(&self, name: &str, hub: &Hub, more: &[String]) -> Result<Server> {
        let server = Server::start(&self.server_flags(name, hub, more)?);
        let server = server.with_context(|| format!("the tunnel-server {name} did not start"))?;
        server.wait_ready(LIMIT).with_context(|| format!("the tunnel-server {name} is not ready"))?;
        Ok(server)
    }

    /// Creates the hub account of the tunnel-server `name`; returns its arguments, with the
    /// program's name first and `more` last.
    pub fn server_flags(&self, name: &str, hub: &Hub, more: &[String]) -> Result<Vec<String>> {
        let files = &self.files;
        let kubeconfig = hub.create_reviewer(&format!("{name}-reviewer"))?;
        let mut flags = vec![
            "tunnel-server".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--agent-listen=127.0.0.1:0".to_owned(),
            format!("--agent-tls-cert-file={}", files.serving.certificate.display()),
            format!("--agent-tls-private-key-file={}", files.serving.key.display()),
            format!("--agent-client-ca-file={}", files.agents_authority.display()),
            "--admin-listen=127.0.0.1:0".to_owned(),
            DRAIN.to_owned(),
        ];
        flags.extend_from_slice(more);
        Ok(flags)
    }

    /// The flags of a listener for frontends over TLS at `listen`.
    pub fn frontend_flags(&self, listen: SocketAddr) -> Vec<String> {
        let Files { serving, frontends_authority, .. } = &self.files;
        vec![
            format!("--frontend-listen={listen}"),
            format!("--frontend-tls-cert-file={}", serving.certificate.display()),
            format!("--frontend-tls-private-key-file={}", serving.key.display()),
            format!("--frontend-client-ca-file={}", frontends_authority.display()),
        ]
    }
}

// === impl Tunnelled ===

impl Tunnelled {
    /// Starts everything, registers the clusters on `hub`, and waits until `member` answers through
    /// both.
    pub fn start(tunnel: &Tunnel, hub: &Hub, member: &Member, member_token: &str) -> Result<Self> {
        let launcher = &tunnel.launcher;
        let server = tunnel.start_server("tunnel-server", hub, &tunnel.frontend_flags(tunnel.frontend_address()))?;
        let agents_port = ports::free()?;
        let embedded = [
            format!("--tunnel-listen=127.0.0.1:{agents_port}"),
            format!("--tunnel-client-ca-file={}", tunnel.files.agents_authority.display()),
        ];
        let embedded = Product::start_unregistered(launcher, CLUSTER_EMBEDDED, &hub.gateway_kubeconfig(), &embedded)?;
        let link = |cluster: &str, server: SocketAddr, authority: &Path| {
            let token = hub.create_agent(&format!("agent-{cluster}"), &[cluster])?;
            let credential = AgentCredential::token(launcher, cluster, &token)?;
            AgentOptions::new(cluster, server, authority, member.server.address(), credential).start()
        };
        let agents = vec![
            link(CLUSTER_TUNNEL, server.agent_address(), &tunnel.files.serving_authority)?,
            link(CLUSTER_EMBEDDED, SocketAddr::from((Ipv4Addr::LOCALHOST, agents_port)), &embedded.authority_file())?,
        ];
        for agent in &agents {
            agent.wait_ready(LIMIT).context("an agent is not ready")?;
        }
        let secret = MemberSecret::with_token(&member.server, member_token).behind_tunnel();
        for cluster in [CLUSTER_TUNNEL, CLUSTER_EMBEDDED] {
            hub.register_member(cluster, &secret)?;
        }
        Ok(Self {
            embedded,
            agent_address: server.agent_address(),
            registry: Arc::clone(server.registry()),
            admin: server.admin_address(),
            running: Mutex::new((agents, server)),
        })
    }

    /// The metrics addresses of the tunnel-server and the agents.
    pub fn admins(&self) -> Vec<SocketAddr> {
        let running = self.running.lock();
        running.0.iter().map(Agent::admin_address).chain([self.admin]).collect()
    }

    /// The tunnel-server's metrics address.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// The metric `name` of the tunnel-server: the sum over all its series whose labels contain
    /// `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        metric(self.admin, name, labels)
    }
}

/// The metric `name` of the program with the admin endpoint `admin`: the sum over all its series
/// whose labels contain `labels`, 0 if there are none.
pub fn metric(admin: SocketAddr, name: &str, labels: &str) -> Result<f64> {
    Ok(kit::exposition::sum(&http::plain(admin, "/metrics")?, name, labels))
}
