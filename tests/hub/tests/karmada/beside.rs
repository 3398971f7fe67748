//! Next to Karmada's own server: the gateway serves members, with that server's codes and output,
//! and forwards everything else to it, byte for byte.

mod same;

use std::path::Path;

use hub_tests::control_plane::ApiServer;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::karmada::{self, Karmada};
use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::mask::mask;
use hub_tests::page::{below, blocks, first};
use hub_tests::prelude::*;
use hub_tests::product::Product;
use hub_tests::promtool;
use hub_tests::tls_server::TlsServer;
use hub_tests::tools::{Tool, provide};
use hub_tests::usage::Usage;

use super::{API_SERVICE, CLUSTERS, LIMIT, grant_to};
use crate::streams::Protocol;

const NAME: &str = "beside-user";
const USER: &str = "system:serviceaccount:default:beside-user";
const BERLIN: &str = "beside-berlin";
/// The member, with a credential that may impersonate that user, and none of the user's groups.
const NARROW: &str = "beside-narrow";
/// A cluster that no user has rights to.
const PARIS: &str = "beside-paris";
/// The namespace of the Secrets that Karmada's clusters name, and of the pod.
const NAMESPACE: &str = "karmada-beside";
const POD: &str = "talker";
const HUB_DOCUMENTS: [&str; 2] = [
    "api-resources --api-group=cluster.karmada.io --no-headers",
    "explain clusters.spec.syncMode --api-version=cluster.karmada.io/v1alpha1",
];
/// The tool's commands for members.
const COMMANDS: [&str; 9] = [
    "get clusters",
    "get pods -n karmada-beside --operation-scope=members --clusters=beside-berlin",
    "get pods -n karmada-beside -o yaml --operation-scope=members --clusters=beside-berlin",
    "get nodes -o wide --operation-scope=members --clusters=beside-berlin",
    "describe pod talker -n karmada-beside --operation-scope=members --cluster=beside-berlin",
    "logs talker -n karmada-beside --cluster=beside-berlin",
    "api-resources --operation-scope=members --cluster=beside-berlin",
    "top pods -n karmada-beside --clusters=beside-berlin",
    "top nodes --clusters=beside-berlin",
];

struct Fleet<'a> {
    testbed: &'a Testbed,
    karmada: Karmada,
    gateway: Product,
    tool: Kubectl,
    /// For what the tool tells of the member's pods and nodes.
    nodes: Vec<String>,
    _usage: Usage,
}

pub(super) fn beside(testbed: &Testbed) -> Result<()> {
    let _alone = super::GROUP.lock();
    let fleet = Fleet::set(testbed)?;
    let tried = fleet.tried().with_context(|| fleet.karmada.log_tail());
    let server = &testbed.hub.server;
    // Before the servers end: the hub's discovery requests every API that is registered.
    server.delete(API_SERVICE)?;
    for cluster in [BERLIN, NARROW, PARIS] {
        testbed.hub.forget_member(cluster)?;
    }
    tried
}

// === impl Fleet ===

impl<'a> Fleet<'a> {
    /// Prepares a Karmada with three clusters, which serves its group on the hub; and a gateway
    /// that knows the same clusters.
    fn set(testbed: &'a Testbed) -> Result<Self> {
        let (hub, member) = (&testbed.hub, &testbed.member.server);
        let karmada = testbed.start_karmada()?;
        hub.server.create_namespace(NAMESPACE)?;
        member.create_namespace(NAMESPACE)?;
        testbed.member.run_pod(NAMESPACE, POD, "one line\nanother\n")?;
        let tokens =
            [(BERLIN, testbed.member_token.clone()), (NARROW, narrow(testbed)?), (PARIS, testbed.member_token.clone())];
        for (cluster, token) in &tokens {
            hub.register_member(cluster, &MemberSecret::with_token(member, token))?;
            let metadata = json!({"name": cluster, "namespace": NAMESPACE});
            let data = json!({"token": token, "caBundle": member.authority().root_pem()});
            hub.apply(&[json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})])?;
        }
        let gateway = gateway(testbed, &karmada)?;
        let admin = hub.server.kubectl();
        let tool = Kubectl {
            binary: provide(Tool::Karmadactl)?,
            kubeconfig: admin.kubeconfig.clone(),
            cache: testbed.directory("karmadactl-beside")?,
        };
        let nodes = member.names("nodes")?;
        let usage = used(member, &nodes)?;
        let fleet = Self { testbed, karmada, gateway, tool, nodes, _usage: usage };
        fleet.moved("karmada.yaml", &fleet.karmada.authority_file())?;
        for (cluster, _) in &tokens {
            let secret = json!({"namespace": NAMESPACE, "name": cluster});
            let spec = json!({"syncMode": "Push", "apiEndpoint": member.url(), "secretRef": secret, "impersonatorSecretRef": secret});
            let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": cluster}, "spec": spec});
            wait::until("Karmada to take its Cluster", LIMIT, || admin.apply(&object.to_string()).map(drop))?;
        }
        Ok(fleet)
    }

    fn tried(&self) -> Result<()> {
        let admin = self.testbed.hub.server.kubectl();
        let (theirs, documents) = (self.outputs()?, self.documents()?);
        page(self)?;
        migration(self)?;
        self.moved("gateway.yaml", &self.gateway.authority_file())?;
        let metrics = self.gateway.client(Some(self.testbed.hub.server.admin())).get("/metrics", &[])?.text();
        promtool::evaluated(&metrics, &["ClusterGatewayKarmadaFilesRefused"])?;
        wait::until("the hub to tell of the group as before", LIMIT, || {
            let now = self.documents()?;
            ensure!(now == documents, "{now:?}, before {documents:?}");
            Ok(())
        })?;
        for (name, (ours, theirs)) in
            self.outputs()?.iter().zip(&theirs).map(|(ours, theirs)| (&ours.0, (&ours.1, &theirs.1)))
        {
            ensure!(ours == theirs, "{name}: {ours:?}, on Karmada's own server {theirs:?}");
        }
        same::answers(self.testbed, &self.karmada, &self.gateway)?;
        self.rights()?;
        self.without_the_hub()?;
        // Back to Karmada: the gateway owns none of the group, and all of it is there.
        self.moved("karmada.yaml", &self.karmada.authority_file())?;
        wait::until("Karmada to refuse the group again", LIMIT, || {
            let code = self.through_the_hub(NARROW, "/version")?.status;
            ensure!(code == StatusCode::FORBIDDEN, "{code}");
            Ok(())
        })?;
        let listed = admin.ok("get clusters.cluster.karmada.io -o name")?;
        ensure!(listed.lines().count() == 3, "{listed}");
        Ok(())
    }

    /// The three cases of Karmada's own suite, with both servers, ours through the hub and
    /// directly, and the one in which they differ.
    fn rights(&self) -> Result<()> {
        let hub = &self.testbed.hub;
        let both = |cluster: &str, codes: [u16; 2]| {
            wait::until("both to answer as they should", LIMIT, || {
                let path = "/api/v1/namespaces";
                let answers =
                    [self.directly(cluster, path)?, self.through_the_hub(cluster, path)?, self.at_ours(cluster, path)?];
                let found = answers.each_ref().map(|answer| answer.status.as_u16());
                let texts = answers.each_ref().map(Response::text);
                let [theirs, ours] = codes;
                ensure!(found == [theirs, ours, ours], "{cluster}: {found:?} in place of {codes:?}: {texts:?}");
                Ok(())
            })
        };
        let unknown = self.directly(BERLIN, "/version")?;
        ensure!(unknown.text().contains("clusters/proxy"), "{}", unknown.text());
        both(BERLIN, [403, 403])?;
        hub.apply(&grant_to(NAME, "clusters/proxy", Some(&[BERLIN, NARROW])))?;
        let member = format!("User \"{USER}\" cannot list resource \"namespaces\"").replace('"', "\\\"");
        wait::until("the member to refuse", LIMIT, || {
            let path = "/api/v1/namespaces";
            for answer in
                [self.directly(BERLIN, path)?, self.through_the_hub(BERLIN, path)?, self.at_ours(BERLIN, path)?]
            {
                ensure!(answer.status == StatusCode::FORBIDDEN && answer.text().contains(&member), "{}", answer.text());
            }
            Ok(())
        })?;
        let binding = format!("create clusterrolebinding {NAME} --clusterrole=cluster-admin --user={USER}");
        self.testbed.member.server.kubectl().ok(&binding)?;
        both(BERLIN, [200, 200])?;
        both(PARIS, [403, 403])?;
        both(NARROW, [403, 200])?;
        let trapped = self.directly(NARROW, "/api/v1/namespaces")?.text();
        ensure!(trapped.contains("cannot impersonate resource \\\"groups\\\""), "{trapped}");
        Ok(())
    }

    /// What the tool asks members for, with kubectl, at Karmada's own server and at the gateway:
    /// the tool itself finds members by way of the hub alone.
    fn without_the_hub(&self) -> Result<()> {
        let token = self.testbed.hub.server.service_account_token("default", NAME)?;
        let servers: [(&str, &TlsServer); 2] = [("theirs", &*self.karmada), ("ours", &*self.gateway)];
        let [theirs, ours] = servers.map(|(name, server)| -> Result<Vec<(String, Output)>> {
            let directory = self.testbed.directory(&format!("beside-{name}"))?;
            let kubeconfig = Kubeconfig {
                server: format!("https://{}{CLUSTERS}/{BERLIN}/proxy", server.address()),
                authority: server.authority_file(),
                credential: Credential::Token(token.clone()),
            };
            let kubeconfig = kubeconfig.write(directory.join("kubeconfig"))?;
            let kubectl = Kubectl { kubeconfig, cache: directory, ..self.testbed.hub.server.kubectl() };
            let mut outputs = streams(&kubectl, &[])?;
            for command in [format!("get pods -n {NAMESPACE} -o yaml"), format!("logs {POD} -n {NAMESPACE}")] {
                let output = kubectl.args(command.split(' ')).run()?;
                ensure!(output.status == 0, "{command}: {output:?}");
                outputs.push((command, masked(output)));
            }
            Ok(outputs)
        });
        let (theirs, ours) = (theirs?, ours?);
        ensure!(ours == theirs, "{ours:?}, at Karmada's own server {theirs:?}");
        Ok(())
    }

    fn directly(&self, cluster: &str, path: &str) -> Result<Response> {
        self.asked(&self.karmada.client(None), cluster, path)
    }

    fn through_the_hub(&self, cluster: &str, path: &str) -> Result<Response> {
        self.asked(&self.testbed.hub.server.client(None), cluster, path)
    }

    fn at_ours(&self, cluster: &str, path: &str) -> Result<Response> {
        self.asked(&self.gateway.client(None), cluster, path)
    }

    /// A request of the user, who is a ServiceAccount of the hub.
    fn asked(&self, client: &hub_tests::http::Client, cluster: &str, path: &str) -> Result<Response> {
        let token = self.testbed.hub.server.service_account_token("default", NAME)?;
        let bearer = format!("Bearer {token}");
        client.get(&format!("{CLUSTERS}/{cluster}/proxy{path}"), &[("authorization", &bearer)])
    }

    /// The hub's documents about the group.
    fn documents(&self) -> Result<Vec<String>> {
        let kubectl =
            Kubectl { cache: self.testbed.directory("karmada-documents")?, ..self.testbed.hub.server.kubectl() };
        HUB_DOCUMENTS.iter().map(|line| kubectl.ok(line)).collect()
    }

    /// The tool's output, by command.
    fn outputs(&self) -> Result<Vec<(String, Output)>> {
        let mut outputs = Vec::new();
        for command in COMMANDS {
            outputs.push((command.to_owned(), masked(self.tool.args(command.split(' ')).run()?)));
        }
        outputs.extend(streams(&self.tool, &["--operation-scope=members", "--cluster", BERLIN])?);
        let printed = |name: &str, text: &str| {
            outputs.iter().any(|(command, output)| command.starts_with(name) && output.stdout.contains(text))
        };
        let node = self.nodes.first().context("no node")?;
        for (command, text) in [
            ("logs", "one line\nanother\n"),
            ("describe", POD),
            ("get pods", POD),
            ("api-resources", "pods"),
            // What is used of a core looks like an age.
            ("top pods", &format!("{POD} {BERLIN} <age> 1Mi")),
            ("top nodes", &format!("{node} {BERLIN} <age>")),
        ] {
            ensure!(printed(command, text), "{command}: {outputs:?}");
        }
        Ok(outputs)
    }

    /// Makes the hub send the group to the server in a manifest of the page.
    fn moved(&self, file: &str, authority: &Path) -> Result<()> {
        let kubectl = self.testbed.hub.server.kubectl();
        kubectl.apply(&self.manifest(file, authority)?)?;
        kubectl.ok(&format!("wait --for=condition=Available {API_SERVICE} --timeout=60s")).map(drop)
    }

    fn manifest(&self, file: &str, authority: &Path) -> Result<String> {
        let bundle = base64::Engine::encode(&super::STANDARD, std::fs::read(authority)?);
        let manifest = first(below(section()?, &format!("`{file}`:"))?, "yaml")?;
        let (head, _) = manifest.split_once("caBundle: ").context("no caBundle")?;
        let ours = format!("name: gateway, namespace: {SECRET_NAMESPACE}, port: {}", self.gateway.address().port());
        let theirs =
            format!("name: {}, namespace: {SECRET_NAMESPACE}, port: {}", karmada::NAME, self.karmada.address().port());
        let head = head.replace("name: cluster-gateway, namespace: vela-system, port: 9443", &ours);
        let head = head.replace("name: karmada-aggregated-apiserver, namespace: karmada-system, port: 443", &theirs);
        ensure!(head.contains(&ours) || head.contains(&theirs), "{head}");
        Ok(format!("{head}caBundle: {bundle}\n"))
    }
}

/// A metrics server of `member`, once it is asked.
fn used(member: &ApiServer, nodes: &[String]) -> Result<Usage> {
    let usage = Usage::start(member, NAMESPACE)?;
    usage.tell("main", &[(POD, "250m")]);
    let nodes: Vec<_> = nodes.iter().map(|node| (node.as_str(), "1500m")).collect();
    usage.tell_nodes(&nodes);
    let kubectl = member.kubectl();
    wait::until("the member to serve metrics", LIMIT, || kubectl.ok("get --raw /apis/metrics.k8s.io/v1beta1/nodes"))?;
    Ok(usage)
}

/// A token of the member's for an account with the rights that Karmada gives its impersonator for a
/// binding that names a ServiceAccount.
fn narrow(testbed: &Testbed) -> Result<String> {
    let server = &testbed.member.server;
    let token = server.service_account_token("default", NARROW)?;
    let api_version = "rbac.authorization.k8s.io/v1";
    let rule =
        json!({"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [NAME], "verbs": ["impersonate"]});
    let role = json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": NARROW}, "rules": [rule]});
    let binding = json!({"apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": NARROW},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NARROW},
        "subjects": [{"kind": "ServiceAccount", "name": NARROW, "namespace": "default"}]});
    server.apply(&[role, binding])?;
    Ok(token)
}

/// What a command in the pod and its own process say, by command and protocol, with flags that name
/// the member.
fn streams(tool: &Kubectl, of_member: &[&str]) -> Result<Vec<(String, Output)>> {
    let mut outputs = Vec::new();
    let shell = ["sh", "-c", "cat; echo err >&2; exit 3"];
    for (protocol, name) in [(Protocol::WebSocket, "WebSocket"), (Protocol::Spdy, "SPDY")] {
        let into = [&[POD, "-n", NAMESPACE][..], of_member].concat();
        let exec = [&["exec", "-i"], &into[..], &["--"], &shell].concat();
        let attach = [&["attach", "-i"], &into[..]].concat();
        for words in [exec, attach] {
            let output = protocol.apply(tool.args(&words)).stdin("typed\n").run()?;
            ensure!(output.stdout.contains("typed\n"), "{words:?} by {name}: {output:?}");
            outputs.push((format!("{} by {name}", words.join(" ")), masked(output)));
        }
    }
    Ok(outputs)
}

fn masked(Output { status, stdout, stderr }: Output) -> Output {
    Output { status, stdout: mask(&stdout, &[]), stderr: mask(&stderr, &[]) }
}

fn gateway(testbed: &Testbed, karmada: &Karmada) -> Result<Product> {
    let files = testbed.directory("karmada-front-proxy")?;
    let identity = testbed.hub.front_proxy.write_to(&files, "front-proxy")?;
    let flags = [
        "--karmada-dialect=beside".to_owned(),
        format!("--karmada-upstream=https://{}", karmada.address()),
        format!("--karmada-upstream-ca-file={}", karmada.authority_file().display()),
        format!("--karmada-upstream-cert-file={}", identity.certificate.display()),
        format!("--karmada-upstream-key-file={}", identity.key.display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    testbed.start_gateway("karmada-beside", &testbed.hub.gateway_kubeconfig(), &flags)
}

fn section() -> Result<&'static str> {
    const PAGE: &str = include_str!("../../../../docs/dialects.md");
    below(PAGE, "### Beside a Karmada")
}

/// The commands of the page, unchanged: to the gateway, and back.
fn page(fleet: &Fleet<'_>) -> Result<()> {
    there_and_back(fleet, section()?)
}

/// The commands of the other page: to the gateway, and back from there.
fn migration(fleet: &Fleet<'_>) -> Result<()> {
    const PAGE: &str = include_str!("../../../../docs/migration.md");
    there_and_back(fleet, below(PAGE, "## A fleet of Karmada or KubeFed")?)
}

/// Runs the first two blocks of commands.
fn there_and_back(fleet: &Fleet<'_>, section: &str) -> Result<()> {
    let mut blocks = blocks(section, "sh");
    let (there, back) = blocks.next().zip(blocks.next()).context("no commands")?;
    ensure!(there.contains("gateway.yaml") && back.contains("karmada.yaml"), "{there}{back}");
    run(fleet, there)?;
    run(fleet, back)
}

fn run(fleet: &Fleet<'_>, commands: &str) -> Result<()> {
    let directory = fleet.testbed.directory("karmada-page")?;
    for (file, authority) in
        [("gateway.yaml", fleet.gateway.authority_file()), ("karmada.yaml", fleet.karmada.authority_file())]
    {
        std::fs::write(directory.join(file), fleet.manifest(file, &authority)?)?;
    }
    let kubectl = fleet.testbed.hub.server.kubectl();
    kubectl.shell(commands)?.directory(&directory).run()?.success().map(drop)
}
