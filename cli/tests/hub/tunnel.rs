//! `join --tunnel`, and a person's way through most commands.

use std::any::Any;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::ApiServer;
use hub_tests::helm::Helm;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::screens::Screens;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::{load, wait};
use kit::pki::{Authority, Leaf};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, alone_with_agents, clusters, ended, has_both, is_void, joining, member, test};

const LIMIT: Duration = Duration::from_mins(1);
/// Default namespace of agents and accounts on the member.
const NAMESPACE: &str = "cluster-gateway";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "join::a member that cannot be reached is joined by its agent, and leaves nothing behind",
        tunnelled,
    )]
}

/// An agent, which ends when dropped.
type Agent = Box<dyn Any + Send>;

/// A person with a hub and two members, which here are the same one.
struct Walk<'a> {
    testbed: &'a Testbed,
    program: Kubectl,
    /// The member's API.
    api: &'a ApiServer,
    server: SocketAddr,
    screens: Screens,
}

fn tunnelled(testbed: &Testbed) -> Result<()> {
    let server = testbed.tunnelled()?.agent_address;
    let (program, api) = (clusters(testbed), &testbed.member.server);
    let mut walk = Walk { testbed, program, api, server, screens: Screens::default() };
    walk.join_directly()?;
    walk.join_without_servers()?;
    let agent = walk.join_by_agent()?;
    walk.look()?;
    walk.use_them()?;
    walk.lose(agent)?;
    walk.rotate()?;
    walk.detach()?;
    walk.screens.finish()
}

// === impl Walk ===

impl Walk<'_> {
    fn member(&self) -> String {
        member(self.testbed)
    }

    /// Runs `command`, whose output must be as the page shows it. `more` has arguments that only
    /// tests need.
    fn shown(&mut self, command: &str, more: &str, code: i32) -> Result<Output> {
        let output = ended(&self.program, &format!("{command} {more}"), code)?;
        self.screens.compare(command, &output)?;
        Ok(output)
    }

    fn join_directly(&mut self) -> Result<()> {
        // Meanwhile, no other test has an old gateway here, of which the command would warn.
        let _alone = alone_with_agents();
        let joining = joining(self.testbed);
        let joined = self.shown("join berlin --rights view -l env=prod", &joining, 0)?;
        ensure!(joined.stdout.contains("as system:serviceaccount:cluster-gateway:berlin"), "{joined:?}");
        self.shown("alias berlin Customers", "", 0)?;
        self.shown("label berlin tier=web", "", 0).map(drop)
    }

    fn line(&self) -> String {
        // With the chart that the program contains.
        let helm: PathBuf = provide(Tool::Helm).unwrap_or_default();
        format!("{} --helm {}", self.member(), helm.display())
    }

    /// Nothing on this hub says which servers agents link to.
    fn join_without_servers(&mut self) -> Result<()> {
        let (command, line) = ("join oslo --tunnel --rights view -l env=prod", self.line());
        let lost = {
            let _alone = alone_with_agents();
            let lost = ended(&self.program, &format!("{command} {line}"), 1)?;
            let shown = "join oslo --tunnel --rights view -l env=prod    # the hub accepts no agents";
            self.screens.compare(shown, &lost)?;
            lost.stderr
        };
        ensure!(lost.contains("accepts no agents") && lost.contains("--server"), "{lost}");
        self.join_by_chart(&format!("{command} {line} --wait 1s"))?;
        let line = format!("{line} {} --wait 1s", self.server());
        let unlinked = ended(&self.program, &format!("{command} {line}"), 1)?.stderr;
        ensure!(unlinked.contains("oslo is registered") && unlinked.contains("tunnel-agent"), "{unlinked}");
        let printed = ended(&self.program, &format!("{command} {line} --print"), 1)?.stdout;
        ensure!(printed.contains("kind: Deployment") && printed.contains("--cluster=oslo"), "{printed}");
        let file = self.testbed.directory("cli-agent-values")?.join("values.yaml");
        std::fs::write(&file, "cluster: another\nimagePullSecrets: [{name: pull}]\n")?;
        let own = format!("--agent-values {} --agent-set proxy.url=http://proxy:3128", file.display());
        let own = format!("{own} --agent-set cluster=another --agent-set servers={{another:1}}");
        let printed = ended(&self.program, &format!("{command} {line} --print {own}"), 1)?.stdout;
        ensure!(!printed.contains("another"), "{printed}");
        for part in ["--cluster=oslo", "imagePullSecrets:\n", "name: pull\n", "--proxy-url=http://proxy:3128"] {
            ensure!(printed.contains(part), "{part}: {printed}");
        }
        let told = ended(&self.program, &format!("{command} {line} --print --agent-values -"), 2)?.stderr;
        ensure!(told.contains("not read from standard input"), "{told}");
        self.join_by_another_chart(&format!("{command} {line} --print"))
    }

    /// Joins with the agent's chart of another version, and with one that does not know its values.
    fn join_by_another_chart(&self, line: &str) -> Result<()> {
        let chart = self.testbed.directory("cli-another-chart")?;
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/tunnel-agent");
        let copied = Command::new("cp").args(["-r", "-T"]).args([&own, &chart]).status()?;
        ensure!(copied.success(), "cannot copy {}", own.display());
        let file = chart.join("Chart.yaml");
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, text.replace(env!("CARGO_PKG_VERSION"), "0.0.1"))?;
        let line = format!("{line} --agent-chart {}", chart.display());
        let told = ended(&self.program, &line, 1)?.stderr;
        for part in ["warning: the agent's chart is of version 0.0.1, and this program is of", "omit --agent-chart"] {
            ensure!(told.contains(part), "{part}: {told}");
        }
        let file = chart.join("values.schema.json");
        let schema = std::fs::read_to_string(&file)?;
        std::fs::write(&file, schema.replacen("\"servers\"", "\"hubs\"", 1))?;
        let told = ended(&self.program, &line, 1)?.stderr;
        ensure!(told.contains("servers") && told.contains("remedy: correct the values"), "{told}");
        ensure!(told.contains("of another version than this program"), "{told}");
        Ok(())
    }

    /// The servers that agents link to, and their CA, come from what the gateway's chart installed.
    fn join_by_chart(&self, line: &str) -> Result<()> {
        let _alone = alone_with_agents();
        let (hub, service) = (&self.testbed.hub.server, "cluster-gateway-tunnel-agents");
        let helm = Helm::prepare(&self.testbed.launcher().directory, &hub.kubectl().kubeconfig)?;
        let set = ["image.repository=x", "tunnel.server.enabled=true", "tunnel.server.image.repository=y"];
        let set = set.map(|value| format!("--set={value}"));
        let rendered = helm.template("cluster-gateway", SECRET_NAMESPACE, &set)?;
        let installed = |document: &&Value| {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            [service, "cluster-gateway-tunnel-agents-tls"].contains(&name)
        };
        let installed: Vec<_> = rendered.iter().filter(installed).cloned().collect();
        ensure!(installed.len() == 2, "{installed:?}");
        hub.apply(&installed)?;
        let lost = ended(&self.program, line, 1)?.stderr;
        ensure!(lost.contains("has no address that a member could dial") && lost.contains("--server"), "{lost}");
        let checked = ended(&self.program, "check berlin", 0)?.stdout;
        ensure!(checked.contains("tunnel\n  ‼ the Service cluster-gateway-tunnel-agents has no address"), "{checked}");
        let ingress = json!({"status": {"loadBalancer": {"ingress": [{"hostname": "agents.example.com"}]}}});
        hub.patch(&format!("service {service} -n {SECRET_NAMESPACE} --subresource=status"), &ingress)?;
        let unlinked = ended(&self.program, line, 1)?.stderr;
        ensure!(unlinked.contains("oslo is registered, but"), "{unlinked}");
        let checked = ended(&self.program, "check berlin", 0)?.stdout;
        for part in [
            "✓ agents dial agents.example.com:8091",
            "✓ the certificate that agents verify expires in 36",
            "✓ the agents' CA for tunnel-servers expires in 36",
        ] {
            ensure!(checked.contains(part), "{part}: {checked}");
        }
        let args = self.args()?;
        for flag in ["--server=agents.example.com:8091", "--server-name=cluster-gateway-tunnel-agents.vela-system.svc"]
        {
            ensure!(args.contains(flag), "{flag}: {args}");
        }
        let given = self.api.text(&format!("secret tunnel-agent -n {NAMESPACE}"), "/data/server-ca.crt")?;
        let made = installed.iter().find_map(|document| document["data"]["ca.crt"].as_str());
        ensure!(made == Some(given.as_str()), "another CA");
        self.join_by_another_certificate(line, &format!("{service}-tls"))?;
        self.testbed.hub.server.delete(&format!("secret {service}-tls -n {SECRET_NAMESPACE}"))?;
        self.check_by_own_certificate()?;
        self.testbed.hub.server.delete(&format!("service {service} -n {SECRET_NAMESPACE}"))
    }

    /// As of an issuer that everybody knows: without its CA, and not for the name of a Service.
    fn join_by_another_certificate(&self, line: &str, secret: &str) -> Result<()> {
        let line_of_secret = format!("secret {secret} -n {SECRET_NAMESPACE}");
        let certify = |name: &str| {
            let issued = Authority::new("public").issue(&Leaf::new("agents").san(name));
            let patch = json!({"data": {"ca.crt": null}, "stringData": {"tls.crt": issued.chain_pem}});
            self.testbed.hub.server.patch(&line_of_secret, &patch)
        };
        certify("edge.example.com")?;
        let told = ended(&self.program, line, 1)?.stderr;
        ensure!(told.contains("has no CA beside it") && told.contains("oslo is registered, but"), "{told}");
        let args = self.args()?;
        ensure!(args.contains("\"--server=edge.example.com:8091\""), "{args}");
        ensure!(!args.contains("--server-name") && !args.contains("--server-ca-file"), "{args}");
        let checked = ended(&self.program, "check berlin", 0)?.stdout;
        ensure!(checked.contains("✓ agents dial edge.example.com:8091\n"), "{checked}");
        ended(&self.program, &format!("{line} --server-name edge.example.com"), 1)?;
        let args = self.args()?;
        for flag in ["--server=agents.example.com:8091", "--server-name=edge.example.com"] {
            ensure!(args.contains(&format!("\"{flag}\"")), "{flag}: {args}");
        }
        certify("*.example.org")?;
        let refused = "the certificate that agents verify is for *.example.org, and they dial agents.example.com:8091";
        let told = ended(&self.program, line, 1)?.stderr;
        ensure!(told.contains(refused) && told.contains("remedy: give --server HOST:PORT"), "{told}");
        let checked = ended(&self.program, "check berlin", 0)?.stdout;
        ensure!(checked.contains(&format!("‼ {refused}\n    remedy: ")), "{checked}");
        Ok(())
    }

    /// In a Secret that only the tunnel-servers' Deployment names.
    fn check_by_own_certificate(&self) -> Result<()> {
        let issued = Authority::new("own").issue(&Leaf::new("agents").san("own.example.com"));
        let metadata = json!({"name": "cli-own-agents", "namespace": SECRET_NAMESPACE});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata,
            "stringData": {"tls.crt": issued.chain_pem, "tls.key": issued.key_pem}});
        let container = json!({"name": "tunnel-server", "image": "none",
            "args": ["--agent-tls-cert-file=/etc/agents/tls.crt"],
            "volumeMounts": [{"name": "agents", "mountPath": "/etc/agents"}]});
        let volume = json!({"name": "agents", "secret": {"secretName": "cli-own-agents"}});
        let pod = json!({"metadata": {"labels": {"app": "own"}},
            "spec": {"containers": [container], "volumes": [volume]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"selector": {"matchLabels": {"app": "own"}}, "template": pod}});
        self.testbed.hub.apply(&[secret, deployment])?;
        let checked = ended(&self.program, "check berlin", 1)?.stdout;
        for part in ["✓ agents dial own.example.com:8091\n", "✓ the certificate that agents verify expires in 36"] {
            ensure!(checked.contains(part), "{part}: {checked}");
        }
        self.testbed.hub.server.delete(&format!("deployment cli-own-agents -n {SECRET_NAMESPACE}"))?;
        self.testbed.hub.server.delete(&format!("secret cli-own-agents -n {SECRET_NAMESPACE}"))
    }

    /// The arguments of the agents' pods.
    fn args(&self) -> Result<String> {
        self.api.text(&format!("deployment tunnel-agent -n {NAMESPACE}"), "/spec/template/spec/containers/0/args")
    }

    fn server(&self) -> String {
        let authority = self.testbed.tunnel.serving_authority_file();
        format!("--server {} --server-ca {}", self.server, authority.display())
    }

    /// The agent's token, as its pod would see it.
    fn token(&self) -> Result<String> {
        let secret = format!("tunnel-agent -n {NAMESPACE}");
        wait::until("the agent's Secret", LIMIT, || self.api.secret(&secret, "token"))
    }

    /// Mounts the token, as a kubelet would.
    fn mount(&self, token: &str) -> Result<AgentCredential> {
        AgentCredential::token(self.testbed.launcher(), "cli-oslo", token)
    }

    /// Starts the agent with what its pod would get.
    fn agent(&self) -> Result<Agent> {
        let credential = self.mount(&self.token()?)?;
        let (authority, member) = (self.testbed.tunnel.serving_authority_file(), self.testbed.member.server.address());
        let agent = AgentOptions::new("oslo", self.server, authority, member, credential).start()?;
        agent.wait_ready(LIMIT).context("the agent")?;
        Ok(Box::new(agent))
    }

    fn join_by_agent(&mut self) -> Result<Agent> {
        let _alone = alone_with_agents();
        let command = "join oslo --tunnel --rights view -l env=prod";
        let words = format!("{command} {} {}", self.line(), self.server());
        let (agent, joined) = std::thread::scope(|scope| -> Result<_> {
            let joining = scope.spawn(|| ended(&self.program, &words, 0));
            Ok((self.agent()?, joining.join().expect("no panic")?))
        })?;
        self.screens.compare(command, &joined)?;
        ensure!(
            joined.stdout.contains("cluster oslo joined") && joined.stdout.contains("cluster-gateway:oslo"),
            "{joined:?}"
        );
        let args = self.args()?;
        ensure!(args.contains("--cluster=oslo") && args.contains(&self.server.to_string()), "{args}");
        Ok(agent)
    }

    fn look(&mut self) -> Result<()> {
        // The controllers count the agents that the Deployment has.
        wait::until_true("both agents", LIMIT, || has_both(self.api, &format!("tunnel-agent -n {NAMESPACE}")))?;
        let listed = self.shown("list -l env=prod", "", 0)?.stdout;
        let oslo = listed.lines().find(|row| row.starts_with("oslo ")).with_context(|| listed.clone())?;
        let cells: Vec<_> = oslo.split_whitespace().collect();
        ensure!(cells[1] == "Ready" && cells[4..6] == ["ClusterProxy", "2/2"], "{listed}");
        self.shown("list -l env=prod -o wide", "", 0)?;
        self.shown("list -l env=prod -o name", "", 0)?;
        self.shown("kubeconfig berlin", "", 0)?;
        let own = self.testbed.launcher().file("cli-direct.kubeconfig");
        std::fs::copy(&self.program.kubeconfig, &own)?;
        self.testbed.launcher().kubectl(&own).ok("config set-credentials member --token=none")?;
        let direct = format!("kubeconfig oslo --direct --user member --kubeconfig {}", own.display());
        let absent = ended(&self.program, &direct, 1)?.stderr;
        ensure!(absent.contains("oslo is omitted") && absent.contains("omit --direct"), "{absent}");
        self.shown("probe berlin", "", 0)?;
        self.shown("probe oslo", "", 0).map(drop)
    }

    fn use_them(&mut self) -> Result<()> {
        ended(&self.program, "get pods oslo", 0)?;
        self.testbed.member.run_pod("default", "cart", "")?;
        let got = self.shown("get pods -l env=prod", "", 0)?.stdout;
        ensure!(got.lines().count() == 3 && got.contains("berlin") && got.contains("oslo"), "{got}");
        let kubectl = self.testbed.hub.server.kubectl().binary;
        let each = "exec-each -l env=prod -- kubectl get namespace kube-system -o name";
        let output = ended(&self.program, &each.replace("kubectl", &kubectl.to_string_lossy()), 0)?;
        self.screens.compare(each, &output)
    }

    /// The agents of the cluster end: `list`, `probe` and `check` name the hop.
    fn lose(&mut self, agent: Agent) -> Result<()> {
        drop(agent);
        let probed = wait::until("the link to be gone", LIMIT, || ended(&self.program, "probe oslo", 1))?;
        self.screens.compare("probe oslo    # its agents are gone", &probed)?;
        ensure!(probed.stdout.contains("✗ tunnel-agent") && probed.stderr.contains("tunnel-agent runs"), "{probed:?}");
        let checked = ended(&self.program, "check oslo", 1)?.stdout;
        ensure!(checked.contains("✗ oslo: TunnelDown: ") && checked.contains("probe oslo"), "{checked}");
        let listed = ended(&self.program, "list -l env=prod", 0)?.stdout;
        ensure!(listed.lines().any(|row| row.starts_with("oslo ") && row.contains("TunnelDown")), "{listed}");
        let agent = self.agent()?;
        wait::until("the cluster to answer again", LIMIT, || ended(&self.program, "probe oslo", 0))?;
        self.rotate_agents()?;
        drop(agent);
        Ok(())
    }

    /// The agents link with the new token before the old one is revoked.
    fn rotate_agents(&mut self) -> Result<()> {
        let old = self.token()?;
        let line = format!("rotate oslo {}", self.member());
        let rotated = std::thread::scope(|scope| -> Result<Output> {
            let rotating = scope.spawn(|| ended(&self.program, &line, 0));
            wait::until_true("the new token", LIMIT, || Ok(self.token()? != old))?;
            self.mount(&self.token()?)?;
            rotating.join().expect("no panic")
        })?;
        self.screens.compare("rotate oslo --member-context oslo-admin", &rotated)?;
        let restarted = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
        let restarted = self.api.text(&format!("deployment tunnel-agent -n {NAMESPACE}"), restarted)?;
        ensure!(!restarted.is_empty(), "the agents' pods are not replaced");
        wait::until_true("the old token to be void", LIMIT, || is_void(&self.testbed.hub.server, &old))?;
        ended(&self.program, "probe oslo", 0).map(drop)
    }

    /// Rotates under load, without a failed request.
    fn rotate(&mut self) -> Result<()> {
        let path = format!("{}/api/v1/namespaces", Testbed::proxy_path("berlin"));
        let member = self.member();
        let rotated = load::beside(&self.testbed.hub.server, &path, || {
            ended(&self.program, &format!("rotate berlin {member}"), 0)
        })?;
        self.screens.compare("rotate berlin --member-context berlin-admin", &rotated)?;
        self.shown("rename berlin berlin-1", "", 0).map(drop)
    }

    fn detach(&mut self) -> Result<()> {
        let member = self.member();
        ended(&self.program, &format!("detach berlin-1 {member} --yes"), 0)?;
        let refused = ended(&self.program, "rename oslo oslo-1", 2)?.stderr;
        let remedy = "remedy: `kubectl clusters detach oslo`, then `kubectl clusters join oslo-1 --tunnel`";
        ensure!(refused.contains(remedy), "{refused}");
        let gone = ended(&self.program, &format!("detach oslo {member} --yes"), 0)?;
        self.screens.compare("detach oslo --member-context oslo-admin --yes", &gone)?;
        let agents = "the agent's Deployment, PodDisruptionBudget, ServiceAccount and Secret";
        ensure!(gone.stderr.contains(&format!("{agents} {NAMESPACE}/tunnel-agent\n")), "{gone:?}");
        self.left()?;
        // By the remedy: no object of the old name is in the way.
        let join = format!("join oslo-1 --tunnel --rights view {} {} --wait 1s", self.line(), self.server());
        let unlinked = ended(&self.program, &join, 1)?.stderr;
        ensure!(unlinked.contains("oslo-1 is registered, but"), "{unlinked}");
        ended(&self.program, &format!("detach oslo-1 {member} --yes"), 0)?;
        self.left()
    }

    /// Waits until nothing of the clusters is left.
    fn left(&self) -> Result<()> {
        let hub = &self.testbed.hub.server;
        wait::until_true("hub and member to be as they were", LIMIT, || {
            let namespaces = self.api.names("namespaces")?;
            let of_member = self.api.names("clusterrolebindings,deployments -A")?;
            let kinds = "poddisruptionbudgets,serviceaccounts,secrets";
            let in_namespace = self.api.names(&format!("{kinds} -n {NAMESPACE}"))?;
            let kinds = "clusterrolebindings,clusterroles,serviceaccounts,secrets";
            let of_hub = hub.names(&format!("{kinds} -n {SECRET_NAMESPACE}"))?;
            let is_there = namespaces.iter().any(|name| name == NAMESPACE);
            let is_left = |name: &String| name == "tunnel-agent" || name.contains("oslo") || name.contains("berlin");
            let on_member = [namespaces, of_member, in_namespace].concat();
            let is_named = of_hub.iter().any(|name| name.contains("oslo") || name.contains("berlin"));
            Ok(!is_there && !is_named && !on_member.iter().any(is_left))
        })
    }
}
