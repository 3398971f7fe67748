//! Everything a test needs, up and registered: hub, member, gateway, users, and kubectl for each
//! route to the member.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow};
use kit::pki::Leaf;

use crate::audit::Audit;
use crate::control_plane::{ApiServer, Etcd, Launcher};
use crate::http::Client;
use crate::hub::{Hub, MemberSecret};
use crate::informer::Informer;
use crate::karmada::Karmada;
use crate::kubeconfig::{Credential, Kubeconfig};
use crate::kubectl::Kubectl;
use crate::member::{GATEWAY_USER, Member, Nodes};
use crate::ports;
use crate::product::{LOG, Product};
use crate::scratch::Scratch;
use crate::tools::{Tool, Tools};
use crate::tunnel::{CLUSTER_EMBEDDED, CLUSTER_TUNNEL, Tunnel, Tunnelled};

/// The hub's name of the member, with a token.
pub const CLUSTER: &str = "member";
/// The hub's name of the same member, with a client certificate.
pub const CLUSTER_X509: &str = "member-x509";
/// Common name of that certificate.
pub const X509_USER: &str = "gateway-x509";
/// Every verb of `clustergateways/proxy`.
pub const ALL_VERBS: &[&str] = &["get", "create", "update", "patch", "delete"];

/// A route to the member. All routes lead to the same user on the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Directly to the member's API server: the others are compared with it.
    Direct,
    /// Through the hub's aggregator to the gateway.
    Hub,
    /// Directly to the gateway, with a token of the hub.
    Gateway,
    /// Through the hub's aggregator to the gateway, and from there through a tunnel-server and an
    /// agent.
    Tunnel,
    /// Directly to a gateway that an agent links to.
    Embedded,
}

/// The whole testbed. Stopped on drop.
pub struct Testbed {
    /// The gateway. First, so that it is dropped first.
    pub gateway: Product,
    /// The hub.
    pub hub: Hub,
    /// The audit log of `ServiceAccounts` on the hub.
    pub audit: Audit,
    /// The member.
    pub member: Member,
    /// The hub's token of the user of [`Testbed::kubectl`].
    pub token: String,
    /// The token of the gateway's user on the member, as it is in the Secret of [`CLUSTER`].
    pub member_token: String,
    /// The address at which the gateway expects a trace collector. Without a collector nothing is
    /// lost: the hub traces nothing.
    pub collector: SocketAddr,
    /// Keys and ports of the tunnel.
    pub tunnel: Tunnel,
    tunnelled: OnceLock<Result<Tunnelled, String>>,
    etcd: Etcd,
    launcher: Launcher,
    scratch: Scratch,
}

// === impl Route ===

impl Route {
    /// The routes under test that need no tunnel.
    pub const PROXIED: [Self; 2] = [Self::Hub, Self::Gateway];
    /// The routes through a tunnel. They exist once [`Testbed::tunnelled`] was called.
    pub const TUNNELLED: [Self; 2] = [Self::Tunnel, Self::Embedded];
    /// All routes without a tunnel; the first is the one to compare with.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Hub, Self::Gateway];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Tunnel => "tunnel",
            Self::Embedded => "embedded",
        }
    }

    /// The hub's name of the member on this route.
    pub fn cluster(self) -> &'static str {
        match self {
            Self::Direct | Self::Hub | Self::Gateway => CLUSTER,
            Self::Tunnel => CLUSTER_TUNNEL,
            Self::Embedded => CLUSTER_EMBEDDED,
        }
    }
}

// === impl Testbed ===

impl Testbed {
    /// Builds what is missing, starts everything, and waits until it is ready.
    pub fn start() -> Result<Self> {
        let scratch = Scratch::create()?;
        let launcher = Launcher { tools: Tools::prepare()?, directory: scratch.path().to_path_buf() };
        let etcd = Etcd::start(&launcher)?;
        let (audit, audited) = Audit::prepare_of_writes(&launcher, "hub")?;
        let mut hub = Hub::start_with(&launcher, &etcd, &audited)?;
        let tunnel = Tunnel::prepare(&launcher)?;
        let mut member = Member::start(&launcher, &etcd)?;
        let collector = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let mut flags = tunnel.gateway_flags();
        flags.push(format!("--tracing-endpoint={collector}"));
        flags.push(format!("--audit-log-path={}", launcher.file("gateway-audit.log").display()));
        let (gateway, member_token) = std::thread::scope(|scope| {
            let gateway = scope.spawn(|| {
                hub.wait_ready().context("the hub did not come up")?;
                Product::start(&launcher, &hub, &flags).context("the gateway did not come up")
            });
            let token = scope.spawn(|| {
                member.wait_ready().context("the member did not come up")?;
                member.create_admin(GATEWAY_USER)
            });
            anyhow::Ok((gateway.join().expect("no panic")?, token.join().expect("no panic")?))
        })?;
        hub.register_member(CLUSTER, &MemberSecret::with_token(&member.server, &member_token))?;
        let identity = member.server.authority().issue(&Leaf::client(X509_USER).group("system:masters"));
        hub.register_member(CLUSTER_X509, &MemberSecret::with_certificate(&member.server, &identity))?;
        let token = hub.create_user("tester", &[], ALL_VERBS)?;
        let tunnelled = OnceLock::new();
        let testbed = Self {
            gateway,
            hub,
            audit,
            member,
            token,
            member_token,
            collector,
            tunnel,
            tunnelled,
            etcd,
            launcher,
            scratch,
        };
        Route::ALL.into_iter().try_for_each(|route| testbed.write_kubeconfig(route))?;
        Ok(testbed)
    }

    /// The tunnel's programs, which the first call starts.
    pub fn tunnelled(&self) -> Result<&Tunnelled> {
        let tunnelled = self.tunnelled.get_or_init(|| self.start_tunnel().map_err(|error| format!("{error:#}")));
        tunnelled.as_ref().map_err(|error| anyhow!("there is no tunnel: {error}"))
    }

    fn start_tunnel(&self) -> Result<Tunnelled> {
        let tunnelled = Tunnelled::start(&self.tunnel, &self.hub, &self.member, &self.member_token)?;
        self.write_kubeconfig(Route::Tunnel)?;
        let embedded = Self::kubeconfig_of(&tunnelled.embedded, CLUSTER_EMBEDDED, self.credential(Route::Embedded));
        embedded.write(self.kubeconfig_path(Route::Embedded))?;
        Ok(tunnelled)
    }

    /// kubectl on `route` to the member, as a user who may do everything.
    pub fn kubectl(&self, route: Route) -> Kubectl {
        self.launcher.kubectl(&self.kubeconfig_path(route))
    }

    /// kubectl on `route` to `cluster` with another credential, which must be one of the member for
    /// [`Route::Direct`] and one of the hub otherwise. `name` distinguishes this user from others.
    pub fn kubectl_as(&self, route: Route, cluster: &str, name: &str, credential: Credential) -> Result<Kubectl> {
        let path = self.launcher.file(&format!("{name}-{cluster}-{}.kubeconfig", route.name()));
        Ok(self.launcher.kubectl(&self.kubeconfig(route, cluster, credential).write(path)?))
    }

    /// Starts another API server next to the member's, without controllers, and does not wait for
    /// it.
    pub fn start_api_server(&self, name: &str) -> Result<ApiServer> {
        self.start_api_server_with(name, &[])
    }

    /// The same with `more` flags.
    pub fn start_api_server_with(&self, name: &str, more: &[String]) -> Result<ApiServer> {
        ApiServer::start(&self.launcher, &self.etcd, name, "10.98.0.0/16", more)
    }

    /// Starts what has pods run on an API server that is ready.
    pub fn start_nodes(&self, server: &ApiServer) -> Result<Nodes> {
        Nodes::start(&self.launcher, server, ports::free()?)
    }

    /// Starts Karmada's aggregated API server for the hub, and does not wait for it.
    pub fn start_karmada(&self) -> Result<Karmada> {
        Karmada::start(&self.launcher, &self.hub, &self.etcd)
    }

    /// A Karmada elsewhere: a control plane named `name`, and its aggregated API server.
    pub fn start_karmada_apart(&self, name: &str) -> Result<(Hub, Karmada)> {
        Karmada::start_apart(&self.launcher, &self.etcd, name)
    }

    /// Starts another gateway with `more` flags, for the hub of `kubeconfig` and as the user in it.
    pub fn start_gateway(&self, name: &str, kubeconfig: &Path, more: &[&str]) -> Result<Product> {
        Product::start_unregistered(&self.launcher, name, kubeconfig, more)
    }

    /// The same with the oldest supported version of kubectl, and its own cache.
    pub fn oldest(&self, kubectl: Kubectl) -> Kubectl {
        let binary = self.launcher.tools.path(Tool::KubectlOldest).to_path_buf();
        Kubectl { binary, cache: self.launcher.file("kubectl-oldest-cache"), ..kubectl }
    }

    /// Starts client-go's informer on `resource`, with the server and the credential of
    /// `kubeconfig`. `name` distinguishes it from others.
    pub fn start_informer(&self, name: &str, kubeconfig: &Path, resource: &str) -> Result<Informer> {
        let log = self.launcher.file(&format!("informer-{name}.log"));
        Informer::start(self.launcher.tools.path(Tool::Informer), kubeconfig, resource, &log)
    }

    /// The gateway on `route`.
    ///
    /// # Panics
    ///
    /// On [`Route::Embedded`] before [`Testbed::tunnelled`].
    pub fn gateway_on(&self, route: Route) -> &Product {
        match route {
            Route::Embedded => &self.tunnelled().expect("the tunnel is there").embedded,
            Route::Direct | Route::Hub | Route::Gateway | Route::Tunnel => &self.gateway,
        }
    }

    /// A client for `route`, without a certificate.
    pub fn client(&self, route: Route) -> Client {
        match route {
            Route::Direct => self.member.server.client(None),
            Route::Hub | Route::Tunnel => self.hub.server.client(None),
            Route::Gateway | Route::Embedded => self.gateway_on(route).client(None),
        }
    }

    /// The path under which hub and gateway serve `cluster`'s API.
    pub fn proxy_path(cluster: &str) -> String {
        format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{cluster}/proxy")
    }

    /// What other programs of the run need.
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// The log of the product's programs in this process.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.launcher.file(LOG))?)
    }

    /// A directory for a test's files.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.launcher.file(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Keeps logs and files; returns their directory.
    pub fn keep(&mut self) -> PathBuf {
        self.scratch.keep();
        self.launcher.directory.clone()
    }

    fn kubeconfig(&self, route: Route, cluster: &str, credential: Credential) -> Kubeconfig {
        let server = match route {
            Route::Direct => &self.member.server,
            Route::Hub | Route::Tunnel => &self.hub.server,
            Route::Gateway | Route::Embedded => {
                return Self::kubeconfig_of(self.gateway_on(route), cluster, credential);
            }
        };
        let path = if route == Route::Direct { String::new() } else { Self::proxy_path(cluster) };
        Kubeconfig { server: server.url() + &path, authority: server.authority_file().to_path_buf(), credential }
    }

    fn kubeconfig_of(gateway: &Product, cluster: &str, credential: Credential) -> Kubeconfig {
        let server = format!("https://{}{}", gateway.address(), Self::proxy_path(cluster));
        Kubeconfig { server, authority: gateway.authority_file(), credential }
    }

    fn write_kubeconfig(&self, route: Route) -> Result<()> {
        let kubeconfig = self.kubeconfig(route, route.cluster(), self.credential(route));
        kubeconfig.write(self.kubeconfig_path(route)).map(drop)
    }

    fn credential(&self, route: Route) -> Credential {
        Credential::Token(if route == Route::Direct { self.member_token.clone() } else { self.token.clone() })
    }

    fn kubeconfig_path(&self, route: Route) -> PathBuf {
        self.launcher.file(&format!("via-{}.kubeconfig", route.name()))
    }
}

impl Drop for Testbed {
    /// Signals everything at the same time; then each field's own drop waits for its part.
    fn drop(&mut self) {
        self.hub.release();
        self.member.release();
        self.etcd.release();
    }
}
