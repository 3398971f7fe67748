//! The commands of the README and the notes, run unchanged: they register a member and use it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_tests::control_plane::start_controller_manager;
use hub_tests::helm::{Chart, Helm};
use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::page::{commands, first, section};
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, on_hub};
use crate::release::{AVAILABLE, Release};

const RELEASE: &str = "cluster-gateway";

/// Time until the hub's authorizer and the gateway have noticed a write, on a busy machine, where
/// kubectl alone takes a second.
const NOTICED: Duration = Duration::from_mins(1);

const README: &str = include_str!("../../../../README.md");
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const STARTED: &str = include_str!("../../../../docs/getting-started.md");
const IDENTITY: &str = include_str!("../../../../docs/identity.md");
const AGENT: &str = include_str!("../../../../charts/tunnel-agent/README.md");
/// The agent's namespace on the member, in place of `tunnel`, which another test uses.
const OF_AGENT: &str = "tunnel-by-hand";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "commands::a member is registered and used as the README and the notes say", registered)]
}

fn registered(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let release = Release::install(planes, (RELEASE, RELEASE, RELEASE), &[])?;
    let gateway = release.run(&release.workload()?)?;
    release.wait_condition(AVAILABLE)?;
    let operator = Operator::create(planes)?;
    operator.run("kubectl --context berlin create serviceaccount default -n default\nkubectl --context berlin run readme-pod --image=none -n default")?;
    let readme = section(README, "**2. Register a member**", "`kubectl get clustergateways` lists")?;
    operator.follow(&commands(readme)).context("the README")?;
    // The other token, which replaces the first.
    let lasting = section(OPERATIONS, "## A token that does not expire", "## A cluster that was")?;
    let _controller = start_controller_manager(&planes.launcher, &planes.member, &["serviceaccount-token-controller"])?;
    operator.run(&commands(lasting).join("\n"))?;
    let token = operator.run("cat token")?;
    let claims = token.split('.').nth(1).context("no token of a ServiceAccount")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    ensure!(
        claims["sub"] == "system:serviceaccount:kube-system:cluster-gateway" && claims["exp"].is_null(),
        "{claims}"
    );
    operator.undo()?;

    let notes = planes.helm.args(["get", "notes", RELEASE, "-n", NAMESPACE]).run()?.success()?;
    operator.follow(&commands(&notes)).context("the notes")?;
    operator.undo()?;
    for (page, from, to) in [(STARTED, "## 6. Let others in", "## Next"), (IDENTITY, "## Access to", "## Rights on")] {
        operator.grant(section(page, from, to)?)?;
    }
    release.upgrade("tunnel.server.enabled=true")?;
    operator.link(&planes.helm.with(Chart::Agent)).context("the agent's page")?;
    drop(gateway);
    release.uninstall()
}

/// A person with an administrator's rights on both, and a separate directory.
struct Operator<'a> {
    planes: &'a Planes,
    directory: tempfile::TempDir,
    kubeconfig: String,
}

impl<'a> Operator<'a> {
    fn create(planes: &'a Planes) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let hub = planes.hub.server.kubectl().kubeconfig;
        let member = directory.path().join("berlin.kubeconfig");
        let mut context: Value = serde_json::from_slice(&std::fs::read(planes.member.kubectl().kubeconfig)?)?;
        for list in ["clusters", "users", "contexts"] {
            context[list][0]["name"] = "berlin".into();
        }
        context["contexts"][0]["context"] = json!({"cluster": "berlin", "user": "berlin"});
        std::fs::write(&member, context.to_string())?;
        Ok(Self { planes, directory, kubeconfig: format!("{}:{}", hub.display(), member.display()) })
    }

    /// Follows the commands that register a cluster, grant it and use it.
    fn follow(&self, commands: &[String]) -> Result<()> {
        ensure!(commands.iter().filter(|line| line.contains("--context berlin")).count() == 4, "{commands:?}");
        for (number, command) in commands.iter().enumerate() {
            let output = if command.contains("--server https://<hub>") {
                // The hub has to notice the new right, and the gateway the new Secret.
                wait::until("the member to answer", NOTICED, || self.run(command))?
            } else {
                self.run(command)?
            };
            let is_last = number + 1 == commands.len();
            ensure!(!is_last || output.contains("readme-pod"), "{command}: {output}");
        }
        Ok(())
    }

    fn run(&self, text: &str) -> Result<String> {
        let (hub, member) = (self.planes.hub.server.url(), self.planes.member.url());
        let text = text.replace("https://10.0.0.7:6443", &member).replace("https://<hub>", &hub);
        let kubectl = Kubectl { kubeconfig: self.kubeconfig.clone().into(), ..self.planes.hub.server.kubectl() };
        kubectl.shell(&text)?.directory(self.directory.path()).run()?.success()
    }

    /// Follows the commands that let a user use a cluster, and undoes them.
    fn grant(&self, text: &str) -> Result<()> {
        let block = first(text, "sh")?;
        let may = "kubectl auth can-i create clustergateways.cluster.core.oam.dev/berlin --subresource=proxy --as=jane";
        ensure!(self.run(may).is_err(), "she may before");
        self.run(block)?;
        // The hub has to notice the new right.
        wait::until("the right", NOTICED, || self.run(may))?;
        ensure!(self.run(&may.replace("/berlin", "/oslo")).is_err(), "she may use others too");
        self.run("kubectl delete clusterrolebinding,clusterrole berlin")?;
        wait::until_true("the right to be gone", NOTICED, || Ok(self.run(may).is_err()))
    }

    /// Follows the agent's page on the hub and, where that needs no node, on the member, and undoes
    /// it. The files of the member's credential exist already.
    fn link(&self, helm: &Helm) -> Result<()> {
        let token = self.run("cat token")?;
        let on_hub = commands(section(AGENT, "**On the hub**, create", "**On the member**")?);
        ensure!(on_hub.len() == 5, "{on_hub:?}");
        self.run(&on_hub.join("\n"))?;
        self.may_link()?;
        let authority = self.run("cat server-ca.crt")?;
        ensure!(authority.starts_with("-----BEGIN CERTIFICATE-----"), "{authority}");

        let on_member = commands(section(AGENT, "**On the member**", "**On the hub**, register")?);
        let [namespace, secret, install, _status] = &on_member[..] else { bail!("other commands: {on_member:?}") };
        for line in [namespace, secret] {
            let line = line.replace("namespace tunnel", &format!("namespace {OF_AGENT}"));
            let line = line.replace("-n tunnel ", &format!("-n {OF_AGENT} "));
            self.run(&line.replace("kubectl ", "kubectl --context berlin "))?;
        }
        let values = install.strip_prefix("helm install tunnel-agent charts/tunnel-agent -n tunnel ");
        let values: Vec<_> = values.with_context(|| install.clone())?.split_whitespace().map(str::to_owned).collect();
        helm.template("tunnel-agent", "tunnel", &values)?;
        let (_, service) = install.split_once("serverName=").context("no name of the servers")?;
        let service = service.split('.').next().context("there is a first")?;
        self.run(&format!("kubectl -n {NAMESPACE} get service {service}"))?;

        let register = commands(section(AGENT, "**On the hub**, register", "**Or let the agent join")?);
        // As its comment says for hubs that had clusters before the tunnel.
        self.run(&register.join("\n").replace("vela-system-clusters", NAMESPACE))?;
        self.unlink(&token)?;
        self.run(&format!("kubectl --context berlin -n {OF_AGENT} delete secret tunnel-agent"))?;

        let installed = helm.on_chart("install tunnel-agent --dry-run=client", "tunnel", &values)?;
        let (_, notes) = installed.split_once("NOTES:\n").context("no notes")?;
        self.follow_agent(&commands(notes), &token).context("the agent's notes")
    }

    /// The notes have the page's commands on the hub, and two for the agent's pods.
    fn follow_agent(&self, lines: &[String], token: &str) -> Result<()> {
        let (of_pods, on_hub): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("kubectl -n tunnel "));
        ensure!(of_pods.len() == 2 && on_hub.len() == 6, "{lines:?}");
        for line in on_hub {
            self.run(&line.replace("<gateway-namespace>", NAMESPACE).replace("<clusters-namespace>", NAMESPACE))?;
        }
        self.may_link()?;
        self.unlink(token)
    }

    /// The agent's account may link the cluster, but not use it.
    fn may_link(&self) -> Result<()> {
        for (subresource, expected) in [("tunnel", true), ("proxy", false)] {
            let link = json!({"verb": "create", "group": "cluster.core.oam.dev", "resource": "clustergateways",
                "subresource": subresource, "name": "berlin"});
            let may = self.planes.may(NAMESPACE, "tunnel-agent-berlin", &link)?;
            ensure!(may == expected, "{subresource}: {may}");
        }
        Ok(())
    }

    /// Undoes the registration of the cluster behind the tunnel, after a check that it has the
    /// member's `token` and not the agent's.
    fn unlink(&self, token: &str) -> Result<()> {
        wait::until("the cluster to be listed", NOTICED, || {
            let listed = self.run("kubectl get clustergateways berlin")?;
            ensure!(listed.contains("ClusterProxy"), "{listed}");
            Ok(())
        })?;
        let registered =
            self.run(&format!("kubectl -n {NAMESPACE} get secret berlin -o jsonpath='{{.data.token}}' | base64 -d"))?;
        let agent = self.run("cat agent-token")?;
        ensure!(registered == token && agent != token && agent.starts_with("eyJ"), "not the member's token");
        self.run(&format!(
            "kubectl -n {NAMESPACE} delete secret/berlin serviceaccount/tunnel-agent-berlin
             kubectl delete clusterrolebinding,clusterrole tunnel-agent-berlin"
        ))
        .map(drop)
    }

    fn undo(&self) -> Result<()> {
        self.run(&format!(
            "kubectl -n {NAMESPACE} delete secret berlin
             kubectl delete clusterrolebinding,clusterrole berlin
             kubectl --context berlin -n kube-system delete serviceaccount cluster-gateway
             kubectl --context berlin delete clusterrolebinding cluster-gateway"
        ))
        .map(drop)
    }
}
