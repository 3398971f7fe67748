//! One testbed: tunnel-servers and tunnel-agents with their certificates, and callers to the
//! servers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use kit::exposition;
use kit::wait::becomes;
use tempfile::TempDir;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::block_in_place;
use tunnel::ClusterName;
use tunnel_agent::Agent;
use tunnel_server::Server;

use crate::pki::Pki;
use crate::{Caller, Frontend, Site, admin};

/// The cluster of a testbed that needs only one.
pub const CLUSTER: &str = "edge";

/// How long agents may take to link.
const LINKED: Duration = Duration::from_secs(20);
/// How long counters may take to come to rest.
pub const REST: Duration = Duration::from_secs(10);

static MACHINE: LazyLock<std::sync::Arc<RwLock<()>>> = LazyLock::new(std::sync::Arc::default);

/// Servers, agents and their files. Dropping it stops all of them without draining.
pub struct Testbed {
    agents: Vec<Option<Agent>>,
    servers: Vec<Option<Server>>,
    pub pki: Pki,
    /// Every agent's `--api-server`: an echo.
    pub api_server: Site,
    directory: TempDir,
    turn: Turn,
}

/// What to start.
#[derive(Debug)]
pub struct Builder {
    servers: usize,
    agents: Vec<AgentSpec>,
    server_flags: Vec<String>,
    turn: MachineUse,
}

/// How much of the machine a test needs.
#[derive(Debug, Clone, Copy)]
enum MachineUse {
    Nothing,
    Share,
    All,
}

/// One agent to start.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    pub cluster: String,
    /// Links to each server.
    pub links: usize,
    /// `--allow`; loopback by default.
    pub allow: Vec<String>,
    /// Which servers it is given; all when empty.
    pub servers: Vec<usize>,
    /// Servers that are not the testbed's.
    pub elsewhere: Vec<SocketAddr>,
    /// Its API server; the testbed's echo by default.
    pub api_server: Option<SocketAddr>,
    /// Further flags.
    pub flags: Vec<String>,
}

/// Measures need the machine for themselves; everything else shares it, and a test that only waits
/// takes no part of it.
enum Turn {
    None,
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

// === impl Testbed ===

impl Testbed {
    /// One server and one agent of [`CLUSTER`].
    pub async fn simple() -> Self {
        Self::builder().agent(AgentSpec::new(CLUSTER)).start().await
    }

    pub fn builder() -> Builder {
        Builder { servers: 1, agents: Vec::new(), server_flags: Vec::new(), turn: MachineUse::Share }
    }

    /// Starts another agent and waits for its links.
    pub async fn add_agent(&mut self, spec: &AgentSpec) {
        let before = self.links_expected(spec).await;
        self.agents.push(Some(self.start_agent(spec)));
        self.wait_linked(spec, &before).await;
    }

    /// Starts an agent the testbed does not keep and does not wait for.
    pub fn start_agent(&self, spec: &AgentSpec) -> Agent {
        let arguments = self.agent_arguments(spec);
        block_in_place(|| Agent::start(arguments)).expect("the agent starts")
    }

    /// Its command line.
    pub fn agent_arguments(&self, spec: &AgentSpec) -> Vec<String> {
        let files = self.pki.agent(&spec.cluster);
        let mut arguments = vec![
            "tunnel-agent".to_owned(),
            format!("--cluster={}", spec.cluster),
            format!("--server-ca-file={}", self.pki.serving_ca.display()),
            "--server-name=localhost".to_owned(),
            format!("--cert-file={}", files.certificate.display()),
            format!("--key-file={}", files.key.display()),
            format!("--api-server={}", spec.api_server.unwrap_or(self.api_server.address())),
            format!("--links={}", spec.links),
            "--admin-listen=127.0.0.1:0".to_owned(),
        ];
        let servers = spec.indices(self.servers.len()).map(|at| self.server(at).agent_address());
        arguments.extend(servers.chain(spec.elsewhere.iter().copied()).map(|server| format!("--server={server}")));
        arguments.extend(spec.allow.iter().map(|rule| format!("--allow={rule}")));
        arguments.extend(spec.flags.iter().cloned());
        arguments
    }

    pub fn server(&self, at: usize) -> &Server {
        self.servers[at].as_ref().expect("a server that runs")
    }

    pub fn agent(&self, at: usize) -> &Agent {
        self.agents[at].as_ref().expect("an agent that runs")
    }

    /// Takes an agent away from the testbed: to stop it, or to drop it, which is its crash.
    pub fn take_agent(&mut self, at: usize) -> Agent {
        self.agents[at].take().expect("an agent that runs")
    }

    /// Puts an agent where one was taken away.
    pub fn put_agent(&mut self, at: usize, agent: Agent) {
        self.agents[at] = Some(agent);
    }

    /// As [`Testbed::take_agent`].
    pub fn take_server(&mut self, at: usize) -> Server {
        self.servers[at].take().expect("a server that runs")
    }

    /// Lets others have the machine: this testbed does little more than wait from now on.
    pub fn waits(&mut self) {
        self.turn = Turn::None;
    }

    /// Tasks of all servers and agents.
    pub fn tasks(&self) -> usize {
        let servers = self.servers.iter().flatten().map(Server::tasks);
        servers.chain(self.agents.iter().flatten().map(Agent::tasks)).sum()
    }

    /// A frontend of the first server that asks for [`CLUSTER`].
    pub fn caller(&self, kind: Frontend) -> Caller {
        self.caller_of(0, kind, Some(CLUSTER))
    }

    /// All three kinds of them.
    pub fn callers(&self) -> [Caller; 3] {
        Frontend::ALL.map(|kind| self.caller(kind))
    }

    /// A frontend of the server `at` that asks for `cluster`.
    pub fn caller_of(&self, at: usize, kind: Frontend, cluster: Option<&str>) -> Caller {
        let address = self.server(at).frontend_address().expect("servers of a stage have a TLS frontend");
        Caller::new(kind, &self.pki, self.uds(at), address, cluster)
    }

    /// The exposition of the server `at`.
    pub async fn metrics(&self, at: usize) -> String {
        admin::get(self.server(at).admin_address(), "/metrics").await.expect("the admin endpoint answers").1
    }

    /// One series of the first server, all samples added up.
    pub async fn metric(&self, series: &str) -> f64 {
        exposition::sum(&self.metrics(0).await, series, "")
    }

    /// Waits until no server has a stream or holds a byte, and no agent has a stream.
    pub async fn wait_idle(&self) {
        for server in self.servers.iter().flatten() {
            let address = server.admin_address();
            for series in ["tunnel_server_streams_open", "tunnel_server_held_bytes"] {
                wait_zero(address, series).await;
            }
            let listed =
                || server.registry().list().into_iter().all(|cluster| cluster.streams == 0 && cluster.dials == 0);
            kit::wait::eventually(REST, listed).await;
        }
        for agent in self.agents.iter().flatten() {
            wait_zero(agent.admin_address(), "tunnel_agent_streams").await;
        }
    }

    /// The Unix socket of the server `at`.
    pub fn uds(&self, at: usize) -> PathBuf {
        self.directory.path().join(format!("frontend-{at}.sock"))
    }

    async fn links(&self, at: usize, cluster: &str) -> f64 {
        let label = format!("cluster=\"{cluster}\"");
        exposition::sum(&self.metrics(at).await, "tunnel_server_links", &label)
    }

    async fn links_expected(&self, spec: &AgentSpec) -> Vec<(usize, f64)> {
        let mut expected = Vec::new();
        for at in spec.indices(self.servers.len()) {
            let links = u32::try_from(spec.links).expect("few");
            expected.push((at, self.links(at, &spec.cluster).await + f64::from(links)));
        }
        expected
    }

    async fn wait_linked(&self, spec: &AgentSpec, expected: &[(usize, f64)]) {
        let cluster = ClusterName::parse(&spec.cluster).expect("a cluster's name");
        for &(at, links) in expected {
            let what = format!("{links} links of {cluster} at server {at}");
            becomes(LINKED, what, async || {
                self.server(at).registry().is_linked(&cluster) && self.links(at, cluster.as_str()).await >= links
            })
            .await;
        }
    }

    /// The command line of a tunnel-server that listens at `ports` of loopback: for agents, for
    /// frontends, for the operator.
    pub fn server_arguments(&self, ports: [u16; 3], uds: &Path, flags: &[String]) -> Vec<String> {
        let [agents, frontends, admin] = ports;
        let mut arguments = vec![
            "tunnel-server".to_owned(),
            format!("--agent-listen=127.0.0.1:{agents}"),
            format!("--agent-tls-cert-file={}", self.pki.agent_listener.certificate.display()),
            format!("--agent-tls-private-key-file={}", self.pki.agent_listener.key.display()),
            format!("--agent-client-ca-file={}", self.pki.agents_ca.display()),
            format!("--frontend-listen=127.0.0.1:{frontends}"),
            format!("--frontend-tls-cert-file={}", self.pki.frontend_listener.certificate.display()),
            format!("--frontend-tls-private-key-file={}", self.pki.frontend_listener.key.display()),
            format!("--frontend-client-ca-file={}", self.pki.frontends_ca.display()),
            format!("--frontend-uds={}", uds.display()),
            format!("--admin-listen=127.0.0.1:{admin}"),
        ];
        arguments.extend(flags.iter().cloned());
        arguments
    }

    fn start_server(&self, at: usize, flags: &[String]) -> Server {
        let arguments = self.server_arguments([0; 3], &self.uds(at), flags);
        block_in_place(|| Server::start(arguments)).expect("the server starts")
    }
}

async fn wait_zero(address: SocketAddr, series: &str) {
    let what = format!("{series} at 0");
    becomes(REST, what, async || {
        let (_, text) = admin::get(address, "/metrics").await.expect("the admin endpoint answers");
        exposition::sum::<f64>(&text, series, "") == 0.0
    })
    .await;
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // They bring runtimes of their own.
        let ended = (std::mem::take(&mut self.agents), std::mem::take(&mut self.servers));
        block_in_place(|| drop(ended));
    }
}

// === impl Builder ===

impl Builder {
    #[must_use]
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    #[must_use]
    pub fn agent(mut self, spec: AgentSpec) -> Self {
        self.agents.push(spec);
        self
    }

    /// A further flag of every server.
    #[must_use]
    pub fn server_flag(mut self, flag: impl Into<String>) -> Self {
        self.server_flags.push(flag.into());
        self
    }

    /// No other testbed of this process runs at the same time: for tests that measure.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.turn = MachineUse::All;
        self
    }

    /// Others may measure meanwhile: for tests that do next to nothing but wait.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.turn = MachineUse::Nothing;
        self
    }

    /// Starts everything and waits until every agent is linked.
    pub async fn start(self) -> Testbed {
        let turn = match self.turn {
            MachineUse::Nothing => Turn::None,
            MachineUse::Share => Turn::Shared { _guard: MACHINE.clone().read_owned().await },
            MachineUse::All => Turn::Alone { _guard: MACHINE.clone().write_owned().await },
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pki = Pki::write(directory.path());
        let api_server = Site::echo().await;
        let (agents, servers) = (Vec::new(), Vec::new());
        let mut testbed = Testbed { agents, servers, pki, api_server, directory, turn };
        for at in 0..self.servers {
            let server = testbed.start_server(at, &self.server_flags);
            testbed.servers.push(Some(server));
        }
        for spec in &self.agents {
            testbed.add_agent(spec).await;
        }
        testbed
    }
}

// === impl AgentSpec ===

impl AgentSpec {
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            links: 2,
            allow: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
            servers: Vec::new(),
            elsewhere: Vec::new(),
            api_server: None,
            flags: Vec::new(),
        }
    }

    #[must_use]
    pub fn allow(mut self, rule: &str) -> Self {
        self.allow.push(rule.to_owned());
        self
    }

    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    fn indices(&self, servers: usize) -> impl Iterator<Item = usize> + use<> {
        let all = if self.servers.is_empty() { (0..servers).collect() } else { self.servers.clone() };
        all.into_iter()
    }
}
