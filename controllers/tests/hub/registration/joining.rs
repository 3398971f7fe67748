//! The tunnel-agent joins by itself: one command at the member, and at the hub an approval and an
//! acceptance.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use ::placement::quantity::Quantity;
use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Response;
use http_body_util::BodyExt as _;
use hub_tests::helm::{self, Chart, Helm, account_kubeconfig};
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::tunnel::{AgentCredential, AgentOptions, Joining, metric};
use hub_tests::wait;
use hyper::body::Incoming;
use kit::pki::{Leaf, PemFiles};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout};
use tunnel_agent::Agent;
use tunnel_server::Server;

use super::agent;
use super::klusterlet::{self, Klusterlet};
use super::{Registration, accept, condition, exists, get, managed, wait_condition};
use crate::fixture::{Running, SOON, apply, namespace};

const NAME: &str = "joins";
const PLACE: &str = "joining-place";
/// Namespace of the agent on the member.
const NAMESPACE: &str = "default";
/// A namespace of the member that is made while a stream is held.
const HELD: &str = "joins-held";
const DELIVERY: &str = "cluster.core.oam.dev/delivery";
/// Time from a denial to the end of all links.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Time for an agent to look again, and to come back after refusals.
const AGAIN: Duration = Duration::from_mins(1);

/// A tunnel-server that accepts certificates of the hub's CA, and the agent of a cluster.
pub struct Member<'a> {
    testbed: &'a Testbed,
    name: &'static str,
    server: Server,
    pub options: AgentOptions,
    state: PathBuf,
}

/// A kubeconfig of the member for an agent that the chart installs with these values, too: with the
/// rights that the chart grants, and no others.
fn installed(testbed: &Testbed, cluster: &str, values: &str) -> Result<PathBuf> {
    let (member, release) = (&testbed.member.server, format!("{cluster}-tunnel-agent"));
    let admin = member.kubectl().kubeconfig;
    let helm = Helm::prepare(&testbed.directory(&format!("{cluster}-helm"))?, &admin)?.with(Chart::Agent);
    let set = format!(
        "--set=cluster={cluster},servers={{hub.example.com:8091}},register.enabled=true,register.bootstrapSecret=a{values}"
    );
    let objects = helm.template(&release, NAMESPACE, &[set])?;
    member.apply(&helm::rights(&objects, NAMESPACE))?;
    for right in [
        json!({"verb": "list", "resource": "nodes"}),
        json!({"verb": "update", "resource": "secrets", "name": "hub-kubeconfig-secret", "namespace": NAMESPACE}),
    ] {
        // The server authorizes by what its informers have seen.
        wait::until_true(&format!("the chart's right {right}"), SOON, || member.may(NAMESPACE, &release, &right))?;
    }
    account_kubeconfig(member, NAMESPACE, &release)
}

pub fn joins(testbed: &Testbed) -> Result<()> {
    let mut registration = Registration::with_ports(testbed, PLACE, "")?;
    let member = Member::prepare(testbed, NAME, PLACE, "")?;
    let options = member.options.clone().flag("--state-secret=default/hub-kubeconfig-secret");
    let options = options.flag(&format!("--member-api-url={}", testbed.member.server.url()));
    let member = Member { options, ..member };
    let agent = member.options.start()?;
    member.two_yeses()?;
    agent.wait_ready(AGAIN)?;
    member.is_told()?;
    member.is_delivered_to()?;
    member.is_reached()?;
    member.links_no_other()?;
    member.no_and_yes()?;
    member.is_not_delivered_to()?;
    let agent = member.starts_again(agent)?;
    let agent = member.renews(agent, &mut registration.running)?;
    member.joins_again(agent)?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))?;
    testbed.hub.forget_member(NAME)
}

/// Reads a watch until its events have `text`.
async fn tells(watch: &mut Response<Incoming>, text: &str) -> Result<()> {
    let read = async {
        let mut told = Vec::new();
        while let Some(frame) = watch.frame().await {
            told.extend(frame?.into_data().unwrap_or_default());
            if String::from_utf8_lossy(&told).contains(text) {
                return Ok(());
            }
        }
        Err(anyhow!("it ended"))
    };
    timeout(SOON, read).await.with_context(|| format!("no event of {text}"))?
}

// === impl Member ===

impl<'a> Member<'a> {
    /// Prepares the agent of cluster `name`, with a bootstrap kubeconfig of a user in `place`, and
    /// the rights that its chart grants with `values`.
    pub fn prepare(testbed: &'a Testbed, name: &'static str, place: &str, values: &str) -> Result<Self> {
        // The account that `start_server` creates.
        testbed.hub.allow_following(&format!("{name}-reviewer"))?;
        let mut flags = testbed.tunnel.frontend_flags(testbed.tunnel.frontend_address());
        flags.push("--agent-hub-client-ca".to_owned());
        let server = testbed.tunnel.start_server(name, &testbed.hub, &flags)?;
        let directory = testbed.directory(name)?;
        let bootstrap = klusterlet::bootstrap(testbed, place, directory.join("bootstrap.kubeconfig"))?;
        let state = directory.join("state");
        let kubeconfig = installed(testbed, name, values)?;
        let credential = AgentCredential::Joining(Joining { bootstrap, state_dir: state.clone(), kubeconfig });
        let authority = testbed.tunnel.serving_authority_file();
        let api_server = testbed.member.server.address();
        let options = AgentOptions::new(name, server.agent_address(), authority, api_server, credential);
        Ok(Self { testbed, name, server, options, state })
    }

    fn requests(&self) -> Result<Vec<String>> {
        let name = self.name;
        let all = get(self.testbed, &format!("csr -l open-cluster-management.io/cluster-name={name}"))?;
        let items = all["items"].as_array().cloned().unwrap_or_default();
        Ok(items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect())
    }

    pub fn is_linked(&self) -> bool {
        self.server.registry().linked().iter().any(|cluster| cluster.as_str() == self.name)
    }

    pub fn wait_linked(&self) -> Result<()> {
        wait::until_true("the agent's link", AGAIN, || Ok(self.is_linked()))
    }

    fn approve(&self, known: usize) -> Result<()> {
        let request = wait::until("its request", AGAIN, || {
            let mut requests = self.requests()?;
            ensure!(requests.len() > known, "{requests:?}");
            requests.retain(|name| {
                get(self.testbed, &format!("csr {name}")).is_ok_and(|request| request["status"]["conditions"].is_null())
            });
            requests.pop().context("none that waits")
        })?;
        agent::approve(self.testbed, &request)
    }

    /// Approval and acceptance: neither is enough alone.
    pub fn two_yeses(&self) -> Result<()> {
        let name = self.name;
        self.approve(0)?;
        wait::until_true("the certificate", AGAIN, || Ok(self.state.join("tls.crt").exists()))?;
        ensure!(!exists(self.testbed, &format!("namespace {name}"))? && !self.is_linked(), "it has one yes");
        accept(self.testbed, self.name, true)?;
        self.wait_linked()?;
        for file in ["tls.key", "tls.crt", "kubeconfig", "cluster-name", "agent-name"] {
            let mode = std::fs::metadata(self.state.join(file)).context(file)?.permissions().mode();
            ensure!(mode & 0o777 == 0o600, "{file}: {mode:o}");
        }
        Ok(())
    }

    fn is_told(&self) -> Result<()> {
        let name = self.name;
        wait_condition(self.testbed, self.name, "ManagedClusterConditionAvailable", "True/ManagedClusterAvailable")?;
        ensure!(condition(self.testbed, self.name, "ManagedClusterJoined")?.starts_with("True"));
        let cluster = get(self.testbed, &format!("managedcluster {name}"))?;
        let (status, told) = (&cluster["status"], &cluster["spec"]["managedClusterClientConfigs"][0]);
        ensure!(told["url"] == self.testbed.member.server.url(), "{told}");
        ensure!(status["version"]["kubernetes"].as_str().is_some_and(|version| version.starts_with('v')), "{status}");
        let nodes = self.testbed.member.server.read("nodes")?;
        for (field, resource) in
            [("capacity", "cpu"), ("capacity", "pods"), ("allocatable", "cpu"), ("allocatable", "pods")]
        {
            let amount = |status: &Value| -> Option<f64> {
                Some(status[field][resource].as_str()?.parse::<Quantity>().ok()?.approximate())
            };
            let of_nodes = nodes["items"].as_array().into_iter().flatten().map(|node| amount(&node["status"]));
            let sum: f64 =
                of_nodes.sum::<Option<f64>>().filter(|sum| *sum >= 1.0).context("nodes without resources")?;
            let told = amount(status).with_context(|| format!("{field} {resource} is not told: {status}"))?;
            ensure!((told - sum).abs() < 0.5, "{field} {resource} is not {sum}: {status}");
        }
        let lease = get(self.testbed, &format!("lease managed-cluster-lease -n {name}"))?;
        ensure!(lease["spec"]["renewTime"].is_string(), "{lease}");
        Ok(())
    }

    fn delivery(&self) -> Result<Value> {
        Ok(get(self.testbed, &format!("managedcluster {}", self.name))?["metadata"]["annotations"][DELIVERY].clone())
    }

    /// The cluster has no klusterlet, so its acceptance turned delivery on; now an administrator
    /// turns it off.
    fn is_delivered_to(&self) -> Result<()> {
        let said = self.delivery()?;
        ensure!(said == "push", "{said}");
        self.testbed.hub.server.annotate(&format!("managedcluster {} {DELIVERY}-", self.name))
    }

    /// Neither denial and acceptance nor other writes to the cluster turn it on again.
    fn is_not_delivered_to(&self) -> Result<()> {
        wait_condition(self.testbed, self.name, "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
        let said = self.delivery()?;
        ensure!(said.is_null(), "a person's no was written over: {said}");
        Ok(())
    }

    /// Registers the member behind the tunnel, and reaches it through the hub, the gateway, the
    /// tunnel-server and the agent.
    fn is_reached(&self) -> Result<()> {
        let secret = MemberSecret::with_token(&self.testbed.member.server, &self.testbed.member_token).behind_tunnel();
        self.testbed.hub.register_member(self.name, &secret)?;
        self.wait_answer()
    }

    fn wait_answer(&self) -> Result<()> {
        let name = self.name;
        let path = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{name}/proxy/api/v1/namespaces");
        let server = &self.testbed.hub.server;
        wait::until("the member's answer", SOON, || {
            let answer = server.client(Some(server.admin())).get(&path, &[])?.text();
            ensure!(answer.contains("kube-system"), "{answer}");
            Ok(())
        })
    }

    /// Its links that take new streams.
    fn links(&self) -> Vec<u64> {
        let clusters = self.server.registry().list();
        let own = clusters.iter().filter(|cluster| cluster.cluster == self.name);
        let links = own.flat_map(|cluster| &cluster.agents).flat_map(|agent| &agent.links);
        links.filter(|link| link.usable).map(|link| link.id).collect()
    }

    fn refusals(&self) -> Result<f64> {
        metric(self.server.admin_address(), "tunnel_server_registrations_total", "outcome=\"forbidden\"")
    }

    /// Waits until the tunnel-server follows changes of roles.
    pub fn follows_roles(&self) -> Result<()> {
        let admin = self.server.admin_address();
        wait::until_true("roles to be followed", SOON, || Ok(metric(admin, "tunnel_server_follows_roles", "")? > 0.0))
    }

    /// With its certificate, the agent cannot link as another cluster, which is accepted and has
    /// almost the same name.
    fn links_no_other(&self) -> Result<()> {
        let other = format!("{}0", self.name);
        apply(self.testbed, &[managed(&other)])?;
        accept(self.testbed, &other, true)?;
        wait_condition(self.testbed, &other, "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
        let [certificate, key] = ["tls.crt", "tls.key"].map(|file| self.state.join(file));
        let thief = AgentOptions::new(
            &other,
            self.server.agent_address(),
            self.testbed.tunnel.serving_authority_file(),
            self.testbed.member.server.address(),
            AgentCredential::Certificate(PemFiles { certificate, key }),
        );
        let before = self.refusals()?;
        let thief = thief.start()?;
        wait::until_true("a refusal", AGAIN, || Ok(self.refusals()? > before))?;
        let linked = self.server.registry().linked();
        ensure!(!linked.iter().any(|cluster| cluster.as_str() == other), "it is linked as {other}");
        ensure!(self.is_linked(), "its own link ended");
        thief.stop()?;
        self.testbed.hub.server.delete(&format!("managedcluster {other}"))
    }

    fn no_and_yes(&self) -> Result<()> {
        self.follows_roles()?;
        let before = self.refusals()?;
        accept(self.testbed, self.name, false)?;
        let said = Instant::now();
        wait::until_true("the links' end", AGAIN, || Ok(!self.is_linked()))?;
        ensure!(said.elapsed() < AT_ONCE, "the links went on for {:?}", said.elapsed());
        wait::until_true("a refusal", AGAIN, || Ok(self.refusals()? > before))?;
        accept(self.testbed, self.name, true)?;
        self.wait_linked()?;
        self.wait_answer()
    }

    /// The agent restarts with its certificate and makes no other request: first from the
    /// directory, then from the Secret.
    fn starts_again(&self, agent: Agent) -> Result<Agent> {
        let requests = self.requests()?;
        agent.stop()?;
        let agent = self.options.start()?;
        agent.wait_ready(AGAIN)?;
        wait::until_true("the Secret", SOON, || {
            let secret = self.testbed.member.server.read("secret hub-kubeconfig-secret -n default")?;
            Ok(secret["data"]["tls.crt"].is_string())
        })?;
        agent.stop()?;
        std::fs::remove_dir_all(&self.state)?;
        let agent = self.options.start()?;
        agent.wait_ready(AGAIN)?;
        ensure!(self.requests()? == requests, "it asked again: {:?}", self.requests()?);
        agent.stop()?;
        self.klusterlet_goes_on()?;
        // The next steps put files into the directory.
        self.testbed.member.server.delete("secret hub-kubeconfig-secret -n default")?;
        let agent = self.options.start()?;
        agent.wait_ready(AGAIN)?;
        Ok(agent)
    }

    /// A klusterlet goes on from a copy of the Secret: its Lease beats, and whatever it asks for,
    /// it asks as this agent. With the bootstrap kubeconfig it could do neither.
    fn klusterlet_goes_on(&self) -> Result<()> {
        let member = &self.testbed.member.server;
        let secret = member.read("secret hub-kubeconfig-secret -n default")?;
        let copy = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": secret["data"],
            "metadata": {"name": self.name, "namespace": klusterlet::AGENTS}});
        member.apply(&[namespace(klusterlet::AGENTS), copy])?;
        let agent = String::from_utf8(STANDARD.decode(secret["data"]["agent-name"].as_str().context("a name")?)?)?;
        let known = self.requests()?;
        let klusterlet = Klusterlet::start(self.testbed, self.name, PLACE)?;
        klusterlet.wait_beat()?;
        let identity = format!("system:open-cluster-management:{}:{}", self.name, agent.trim());
        for request in klusterlet.requests()? {
            let is_known = known.iter().any(|name| request["metadata"]["name"] == **name);
            ensure!(is_known || request["spec"]["username"] == identity, "it begins anew: {request}");
        }
        wait_condition(self.testbed, self.name, "ManagedClusterConditionAvailable", "True/ManagedClusterAvailable")?;
        drop(klusterlet);
        member.delete(&format!("secret {} -n {}", self.name, klusterlet::AGENTS))
    }

    /// Replaces its certificate with another of the hub's CA for the same agent.
    fn replace(&self, not_before: i64, not_after: i64) -> Result<String> {
        let name = self.name;
        self.testbed.member.server.delete("secret hub-kubeconfig-secret -n default --ignore-not-found")?;
        let agent = std::fs::read_to_string(self.state.join("agent-name"))?;
        let group = format!("system:open-cluster-management:{name}");
        let minutes = time::Duration::minutes;
        let leaf = Leaf::client(format!("{group}:{}", agent.trim()))
            .group(&group)
            .valid(minutes(not_before), minutes(not_after));
        let issued = self.testbed.hub.server.authority().issue(&leaf);
        std::fs::write(self.state.join("tls.key"), &issued.key_pem)?;
        std::fs::write(self.state.join("tls.crt"), &issued.chain_pem)?;
        Ok(issued.chain_pem)
    }

    /// A certificate with a tenth of its life left is renewed without an administrator, and the
    /// agent links with the new one before it lets go: a stream that is open goes on.
    fn renews(&self, agent: Agent, controllers: &mut Running) -> Result<Agent> {
        agent.stop()?;
        let (old, requests) = (self.replace(-90, 10)?, self.requests()?.len());
        let is_renewed = || anyhow::Ok(std::fs::read_to_string(self.state.join("tls.crt"))? != old);
        // Nobody approves before the stream is open.
        controllers.stop()?;
        let agent = self.options.start()?;
        agent.wait_ready(AGAIN)?;
        self.wait_answer()?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = &self.testbed.hub.server;
        let path = format!("{}/api/v1/namespaces?watch=1", Testbed::proxy_path(self.name));
        let mut watch = runtime.block_on(server.client(Some(server.admin())).open(&path, &[]))?;
        runtime.block_on(tells(&mut watch, "kube-system"))?;
        let links = self.links();
        ensure!(!links.is_empty() && !is_renewed()?, "it was renewed by nobody");
        controllers.restart_stopped()?;
        wait::until_true("another certificate", AGAIN, is_renewed)?;
        ensure!(self.requests()?.len() == requests + 1, "one request: {:?}", self.requests()?);
        wait::until_true("links with it alone", AGAIN, || {
            let now = self.links();
            Ok(!now.is_empty() && now.iter().all(|link| !links.contains(link)))
        })?;
        self.testbed.member.server.create_namespace(HELD)?;
        runtime.block_on(tells(&mut watch, HELD)).context("the stream that was open")?;
        drop(watch);
        agent.wait_ready(AGAIN)?;
        self.wait_answer()?;
        Ok(agent)
    }

    /// An expired certificate is no credential any more: an administrator must approve again.
    fn joins_again(&self, agent: Agent) -> Result<()> {
        agent.stop()?;
        self.replace(-90, -10)?;
        let known = self.requests()?.len();
        let agent = self.options.start()?;
        self.approve(known)?;
        self.wait_linked()?;
        agent.wait_ready(AGAIN)?;
        agent.stop()
    }
}
