//! A member that can be reached only through its agent: both charts installed, each program started
//! with the arguments from its chart, and kubectl used.
//!
//! First with tunnel-servers; then the release is upgraded to gateways that embed one, and the
//! agent finds it by itself.

use hub_tests::helm::{Helm, Workload};
use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::prelude::*;
use hub_tests::testbed::ALL_VERBS;
use hub_tests::{http, ports};
use kit::pki::{Authority, Issued};
use libtest_mimic::Trial;
use tunnel_agent::Agent;
use tunnel_server::Server;

use crate::fixture::{Fixture, Planes, TUNNELLED, on_hub};
use crate::release::{AVAILABLE, Release};

const RELEASE: &str = "far";
const GATEWAY: &str = "far-cluster-gateway";
const SERVER: &str = "far-cluster-gateway-tunnel-server";
const AGENT: &str = "near-tunnel-agent";
const MEMBER_NAMESPACE: &str = "tunnel";
const FRONTENDS_HOST: &str = "far-cluster-gateway-tunnel.vela-system.svc";
const AGENTS_HOST: &str = "far-cluster-gateway-tunnel-agents.vela-system.svc";
/// Time for programs to start and find each other.
const READY: Duration = Duration::from_secs(30);

/// Certificates that are managed outside of the chart, because the Services' names do not resolve
/// here.
struct Certificates {
    agents: Authority,
    serving: Issued,
}

/// The listening ports.
struct Ports {
    agents: u16,
    frontends: u16,
    server_admin: u16,
    agent_admin: u16,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "tunnel::a member that only its agent reaches, with tunnel-servers and embedded", reached)]
}

fn reached(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let mark = planes.audit.mark()?;
    let ports = Ports::free()?;
    let certificates = Certificates::create(planes)?;
    let release =
        Release::install(planes, (RELEASE, GATEWAY, GATEWAY), &[values(planes, "generated", &ports, false)?])?;
    kept_pairs(planes, &release)?;
    release.upgrade_with(&[values(planes, "existing", &ports, true)?])?;
    rights(planes)?;
    planes.hub.register_member(
        TUNNELLED,
        &MemberSecret::with_certificate(&planes.member, planes.member.admin()).behind_tunnel(),
    )?;
    let user = Credential::Token(planes.hub.create_user("far-user", &[TUNNELLED], ALL_VERBS)?);

    let place = planes.directory.join("tunnel-server");
    let server = Workload::read(&planes.hub.server, NAMESPACE, SERVER, &place)?;
    let server = Server::start(&server.args).with_context(|| server.args.join(" "))?;
    server.wait_ready(READY)?;
    probed(ports.server_admin)?;
    let helm = planes.helm_of_member()?;
    let agent = install_agent(planes, &helm, &ports, &certificates)?;
    let mut workload = release.workload()?;
    for arg in &mut workload.args {
        *arg = arg.replace(&format!("--proxy-host={FRONTENDS_HOST}"), "--proxy-host=localhost");
    }
    let gateway = release.run(&workload)?;
    release.wait_condition(AVAILABLE)?;
    use_member(planes, &user, "by-server")?;
    drop(gateway);
    server.stop()?;

    let embedded = "tunnel.server.enabled=false,tunnel.embedded.enabled=true,tunnel.frontends.existingSecret=,tunnel.frontends.existingClientSecret=";
    release.upgrade(embedded)?;
    let gateway = release.run(&release.workload()?)?;
    release.wait_condition(AVAILABLE)?;
    use_member(planes, &user, "embedded")?;
    drop(gateway);
    agent.stop()?;
    planes.ensure_nothing_refused(mark)?;
    helm.args(["uninstall", "near", &format!("--namespace={MEMBER_NAMESPACE}")]).run()?.success()?;
    planes.hub.forget_member(TUNNELLED)?;
    release.uninstall()
}

/// The values of the gateway's release, as helm's arguments with a file.
fn values(planes: &Planes, name: &str, ports: &Ports, existing: bool) -> Result<String> {
    let secret = |name: &'static str| if existing { name } else { "" };
    let values = json!({"replicas": 2, "tunnel": {
        "server": {"enabled": true, "frontendPort": ports.frontends, "adminPort": ports.server_admin, "drainTimeoutSeconds": 1},
        "agents": [TUNNELLED],
        "listen": {"port": ports.agents, "existingSecret": secret("agents-tls"), "service": {"type": "ClusterIP"}},
        "frontends": {"existingSecret": secret("frontends-tls"), "existingClientSecret": secret("gateway-tls")},
    }});
    let file = planes.directory.join(format!("far-{name}.json"));
    std::fs::write(&file, values.to_string())?;
    Ok(format!("--values={}", file.display()))
}

/// Pairs that helm generated stay as long as they are for the right names.
fn kept_pairs(planes: &Planes, release: &Release<'_>) -> Result<()> {
    let names = [
        format!("{GATEWAY}-tunnel-agents-tls"),
        format!("{GATEWAY}-tunnel-frontends-tls"),
        format!("{GATEWAY}-tunnel-gateway-tls"),
    ];
    let rendered = |more: &[&str]| -> Result<Vec<Value>> {
        let more = [&[values_again(planes)], &*more.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()].concat();
        let objects = release.preview(&more)?;
        let data = |name: &String| {
            let secret =
                objects.iter().find(|object| object["kind"] == "Secret" && object["metadata"]["name"] == **name);
            Ok(secret.with_context(|| format!("no Secret {name}"))?["data"].clone())
        };
        names.iter().map(data).collect()
    };
    let here =
        |name: &String| -> Result<Value> { planes.hub.server.field(&format!("secret {name} -n {NAMESPACE}"), "/data") };
    let here = names.iter().map(here).collect::<Result<Vec<_>>>()?;
    ensure!(rendered(&["--set=tunnel.server.replicas=5"])? == here, "other certificates for nothing");
    let other = rendered(&["--set=tunnel.listen.hosts={hub.example.test}"])?;
    ensure!(other[0] != here[0] && other[1..] == here[1..], "the agents' certificate is for other names now");
    Ok(())
}

fn values_again(planes: &Planes) -> String {
    format!("--values={}", planes.directory.join("far-generated.json").display())
}

/// The rights of the agent's account and of the tunnel-server's on the hub.
fn rights(planes: &Planes) -> Result<()> {
    let may = |account: &str, attributes: Value| planes.may(NAMESPACE, account, &attributes);
    let cluster = |subresource: &str, name: &str| {
        json!({"verb": "create", "group": "cluster.core.oam.dev", "version": "v1alpha1", "resource": "clustergateways",
            "subresource": subresource, "name": name})
    };
    let agent = format!("tunnel-agent-{TUNNELLED}");
    ensure!(may(&agent, cluster("tunnel", TUNNELLED))?, "the agent may not link its cluster");
    let secrets = json!({"verb": "list", "resource": "secrets", "namespace": NAMESPACE});
    for attributes in [cluster("tunnel", "member"), cluster("proxy", TUNNELLED), secrets.clone()] {
        ensure!(!may(&agent, attributes.clone())?, "the agent may {attributes}");
    }
    for (group, resource) in
        [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")]
    {
        let attributes = json!({"verb": "create", "group": group, "resource": resource});
        ensure!(may(SERVER, attributes)?, "the tunnel-server may not create {resource}");
    }
    ensure!(!may(SERVER, secrets)?, "the tunnel-server may read the clusters' credentials");
    Ok(())
}

fn install_agent(planes: &Planes, helm: &Helm, ports: &Ports, certificates: &Certificates) -> Result<Agent> {
    let account = format!("tunnel-agent-{TUNNELLED}");
    let token = planes.hub.server.token(NAMESPACE, &account)?;
    let values = json!({
        "cluster": TUNNELLED, "servers": [format!("127.0.0.1:{}", ports.agents)], "serverName": AGENTS_HOST,
        "serverCA": {"pem": certificates.agents.root_pem()}, "credential": {"token": token},
        "apiServer": planes.member.address().to_string(), "adminPort": ports.agent_admin, "drainTimeoutSeconds": 1,
    });
    let file = planes.directory.join("near.json");
    std::fs::write(&file, values.to_string())?;
    let more = ["--create-namespace".to_owned(), format!("--values={}", file.display())];
    helm.on_chart("install near", MEMBER_NAMESPACE, &more)?;
    let place = planes.directory.join("tunnel-agent");
    let workload = Workload::read(&planes.member, MEMBER_NAMESPACE, AGENT, &place)?;
    ensure!(!workload.args.iter().any(|arg| arg.contains(&token)), "the token is an argument");
    let agent = Agent::start(&workload.args).with_context(|| workload.args.join(" "))?;
    agent.wait_ready(READY)?;
    probed(ports.agent_admin)?;
    Ok(agent)
}

/// Sends the kubelet's probes, to the kubelet's port.
fn probed(port: u16) -> Result<()> {
    ["/livez", "/readyz", "/metrics"]
        .iter()
        .try_for_each(|path| http::plain(([127, 0, 0, 1], port).into(), path).map(drop))
}

/// Writes through hub, gateway and tunnel, and checks for the object on the member.
fn use_member(planes: &Planes, user: &Credential, name: &str) -> Result<()> {
    let through = planes.to_cluster(TUNNELLED, "far-user", user.clone())?;
    // A gateway that has just started waits for agents to find it.
    wait::until("the member to answer through the tunnel", READY, || through.ok("get namespace default -o name"))?;
    through.ok(&format!("create configmap far-{name} -n default --from-literal=a=b"))?;
    planes.member.present(&format!("configmap far-{name} -n default"))
}

// === impl Certificates ===

impl Certificates {
    /// Creates them, as Secrets on the hub.
    fn create(planes: &Planes) -> Result<Self> {
        let (agents, frontends) = (Authority::new("far-agents"), Authority::new("far-frontends"));
        let serving = agents.issue(&Leaf::server("agents").san(AGENTS_HOST));
        let certificates = Self { agents, serving };
        let server = frontends.issue(&Leaf::server("frontends").san(FRONTENDS_HOST));
        let client = frontends.issue(&Leaf::client("gateway"));
        for (name, pair, authority) in [
            ("agents-tls", &certificates.serving, &certificates.agents),
            ("frontends-tls", &server, &frontends),
            ("gateway-tls", &client, &frontends),
        ] {
            secret(planes, name, pair, authority)?;
        }
        Ok(certificates)
    }
}

fn secret(planes: &Planes, name: &str, pair: &Issued, authority: &Authority) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"tls.crt": pair.chain_pem, "tls.key": pair.key_pem, "ca.crt": authority.root_pem()},
    });
    planes.hub.apply(&[secret])
}

// === impl Ports ===

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self {
            agents: ports::free()?,
            frontends: ports::free()?,
            server_admin: ports::free()?,
            agent_admin: ports::free()?,
        })
    }
}
