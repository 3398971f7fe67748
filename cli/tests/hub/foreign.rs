//! Commands do not touch what belongs to others: accounts of other hubs and clusters, whatever a
//! cluster's Secret says; agents that others installed; namespaces with more in them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::ApiServer;
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, account, clusters, ended, member, namespace, registered, test, tokens};

const LIMIT: Duration = Duration::from_secs(30);
const JOINED_BY: &str = "cluster.core.oam.dev/joined-by";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "foreign::a Secret that names another's agents gets none of their tokens", agents_of_another),
        test(fixture, "foreign::another hub's account is neither changed nor removed", another_hub),
        test(fixture, "foreign::an account has one cluster, also after a rename", one_account_one_cluster),
        test(fixture, "foreign::only the registered member is acted upon", another_member),
        test(fixture, "foreign::agents and roles that somebody else made are not overwritten", not_overwritten),
        test(fixture, "foreign::a namespace with more in it stays", namespace_stays),
        test(fixture, "foreign::a member that nobody verifies is joined only when that is said", insecure),
        test(fixture, "foreign::a token that another rotate registered is not ended", rotated_at_once),
    ]
}

/// A cluster that is joined for one test.
struct Joined<'a> {
    testbed: &'a Testbed,
    program: Kubectl,
    /// The member's.
    server: &'a ApiServer,
    cluster: &'static str,
}

// === impl Joined ===

impl<'a> Joined<'a> {
    fn of(testbed: &'a Testbed, cluster: &'static str) -> Self {
        Self { testbed, program: clusters(testbed), server: &testbed.member.server, cluster }
    }

    fn new(testbed: &'a Testbed, cluster: &'static str) -> Result<Self> {
        let joined = Self::of(testbed, cluster);
        ended(&joined.program, &joined.line(), 0)?;
        Ok(joined)
    }

    fn member(&self) -> String {
        member(self.testbed)
    }

    fn line(&self) -> String {
        format!("{} --endpoint {}", self.line_anyhow(), self.testbed.member.server.url())
    }

    /// The command line without an endpoint.
    fn line_anyhow(&self) -> String {
        format!("join {0} {1} --rights view --account-namespace cli-{0}", self.cluster, self.member())
    }

    /// Checks that `line` is refused with these words.
    fn refused(&self, line: &str, code: i32, parts: &[&str]) -> Result<()> {
        let told = ended(&self.program, line, code)?.stderr;
        ensure!(told.contains("error: ") && told.contains("remedy: "), "`{line}`: {told}");
        for part in parts {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
        Ok(())
    }

    fn works(&self) -> Result<()> {
        ended(&self.program, &format!("get pods {}", self.cluster), 0).map(drop)
    }

    fn annotate(&self, key: &str, value: &str) -> Result<()> {
        self.testbed.hub.server.annotate(&format!("secret {} -n {SECRET_NAMESPACE} {key}={value}", self.cluster))
    }

    fn detached(&self) -> Result<()> {
        ended(&self.program, &format!("detach {} {} --yes", self.cluster, self.member()), 0)?;
        wait::until_true("the member to be as it was", LIMIT, || {
            let left = self.testbed.member.server.names("clusterrolebindings,namespaces")?;
            Ok(!left.iter().any(|name| name.ends_with(self.cluster)))
        })
    }
}

/// A user that may change one Secret gets no other cluster's token, and removes nothing else from
/// the hub.
fn agents_of_another(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "turku")?;
    let hub = &testbed.hub.server;
    // The agents of another cluster, and an account that belongs to no cluster.
    for (name, binding) in [("tunnel-agent-raisio", "tunnel-agent-raisio"), ("other", "auth-delegator")] {
        hub.create(&[account(SECRET_NAMESPACE, name)])?;
        hub.bind(&format!("cluster-gateway:{binding}"), "view", (SECRET_NAMESPACE, name))?;
    }
    // The objects that a rotation would write to.
    joined.server.create(&[agents_secret("cli-turku", "old"), agents_deployment("cli-turku")])?;
    let key = "cluster.core.oam.dev/agent-account";
    for told in [format!("{SECRET_NAMESPACE}/tunnel-agent-raisio"), "x/auth-delegator".to_owned()] {
        joined.annotate(key, &told)?;
        for line in ["rotate turku", "detach turku --yes"] {
            joined.refused(&format!("{line} {}", joined.member()), 2, &[&told, "tunnel-agent-turku", key])?;
        }
    }
    let token = joined.server.secret("tunnel-agent -n cli-turku", "token")?;
    ensure!(token == "old", "a token was written");
    let secrets = hub.names(&format!("secrets -n {SECRET_NAMESPACE}"))?;
    ensure!(!secrets.iter().any(|name| name.contains("raisio")), "a token was made: {secrets:?}");
    let bindings = "clusterrolebinding cluster-gateway:auth-delegator cluster-gateway:tunnel-agent-raisio";
    hub.present(bindings)?;
    joined.works()?;
    hub.delete(bindings)?;
    hub.delete(&format!("serviceaccount tunnel-agent-raisio other -n {SECRET_NAMESPACE}"))?;
    hub.annotate(&format!("secret turku -n {SECRET_NAMESPACE} {key}-"))?;
    joined.server.delete("secret,deployment tunnel-agent -n cli-turku")?;
    joined.detached()
}

/// The Secret of agents with this token, as somebody else may have made it.
fn agents_secret(namespace: &str, token: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tunnel-agent", "namespace": namespace},
        "stringData": {"token": token}})
}

/// A Deployment of their name that runs nothing.
fn agents_deployment(namespace: &str) -> Value {
    let labels = json!({"app": "tunnel-agent"});
    let containers = json!([{"name": "own", "image": "own"}]);
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "tunnel-agent", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}})
}

fn another_hub(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "kerava")?;
    let binding = "clusterrolebinding cluster-gateway:kerava";
    let uid = testbed.hub.server.text("namespace kube-system", "/metadata/uid")?;
    let own = joined.server.text(binding, "/metadata/annotations")?;
    ensure!(own.contains(&format!("{uid}/kerava")), "whose it is: {own}");
    // As another hub would have created it.
    joined.server.annotate(&format!("{binding} {JOINED_BY}=another-hub/kerava"))?;
    let higher = joined.line().replace("view", "cluster-admin");
    let foreign = "created for another hub";
    joined.refused(&higher, 2, &["ClusterRoleBinding cluster-gateway:kerava", foreign, "another name"])?;
    joined.refused(&format!("rotate kerava {}", joined.member()), 2, &[foreign])?;
    joined.refused(&format!("detach kerava {} --yes", joined.member()), 2, &[foreign, "--hub-only"])?;
    let role = joined.server.text(binding, "/roleRef/name")?;
    ensure!(role == "view", "the other hub's rights are {role}");
    joined.works()?;
    joined.server.annotate(&format!("{binding} {JOINED_BY}={uid}/kerava"))?;
    joined.detached()
}

fn one_account_one_cluster(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "lohja")?;
    ended(&joined.program, "rename lohja lohja-1", 0)?;
    // Under the old name, with the account that the cluster under the new name uses.
    let parts = ["cluster lohja-1 uses the ServiceAccount cli-lohja/lohja", "another name"];
    joined.refused(&joined.line().replace("view", "cluster-admin"), 2, &parts)?;
    let role = joined.server.text("clusterrolebinding cluster-gateway:lohja", "/roleRef/name")?;
    ensure!(role == "view", "{role}");
    // A user that may change one Secret writes the account of another cluster into it.
    let other = Joined::new(testbed, "salo")?;
    other.annotate("cluster.core.oam.dev/member-account", "cli-lohja/lohja")?;
    for line in ["rotate salo", "detach salo --yes"] {
        joined.refused(&format!("{line} {}", joined.member()), 2, &["cluster lohja-1 uses"])?;
    }
    ended(&joined.program, "get pods lohja-1", 0)?;
    other.annotate("cluster.core.oam.dev/member-account", "cli-salo/salo")?;
    other.detached()?;
    ended(&joined.program, &format!("detach lohja-1 {} --yes", joined.member()), 0).map(drop)
}

fn another_member(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "vantaa")?;
    let hub = &testbed.hub.server;
    // By mistake, the person's context leads to another cluster, which has an account of the same
    // name.
    hub.bind("cluster-gateway:vantaa", "view", ("cli-vantaa", "vantaa"))?;
    hub.label("clusterrolebinding cluster-gateway:vantaa app.kubernetes.io/managed-by=kubectl-clusters")?;
    let elsewhere = format!("--member-kubeconfig {}", hub.kubectl().kubeconfig.display());
    for line in ["rotate vantaa", "detach vantaa --yes"] {
        joined.refused(&format!("{line} {elsewhere}"), 2, &["another member", "--member-context"])?;
    }
    hub.delete("clusterrolebinding cluster-gateway:vantaa")?;
    joined.works()?;
    joined.detached()
}

fn not_overwritten(testbed: &Testbed) -> Result<()> {
    let joined = Joined::of(testbed, "forssa");
    let (server, authority) = (joined.server, testbed.tunnel.serving_authority_file());
    let (helm, chart) = (provide(Tool::Helm)?, Chart::Agent.directory());
    let tunnel = format!(
        "{} --tunnel --server 127.0.0.1:1 --server-ca {} --agent-chart {} --helm {} --wait 1s",
        joined.line_anyhow(),
        authority.display(),
        chart.display(),
        helm.display()
    );
    let nothing_made = || -> Result<()> {
        let made = server.names("clusterrolebindings")?;
        ensure!(!made.iter().any(|name| name.contains("forssa")), "something was made: {made:?}");
        Ok(())
    };
    server.create(&[namespace("cli-forssa")])?;
    for (own, kind) in [(agents_secret("cli-forssa", "own"), "Secret"), (agents_deployment("cli-forssa"), "Deployment")]
    {
        server.create(&[own])?;
        let what = format!("the {kind} cli-forssa/tunnel-agent exists");
        joined.refused(&tunnel, 2, &[&what, "--account-namespace"])?;
        nothing_made()?;
        server.delete(&format!("{kind} tunnel-agent -n cli-forssa"))?;
    }
    // A custom role is written by force, but not over another's.
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    server.create(&[json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "cluster-gateway:forssa"}, "rules": [rule]})])?;
    let rules = testbed.launcher().file("cli-forssa.yaml");
    std::fs::write(&rules, "kind: ClusterRole\nrules:\n- {apiGroups: [''], resources: [secrets], verbs: [list]}\n")?;
    let line = joined.line().replace("view", &rules.to_string_lossy());
    joined.refused(&line, 2, &["ClusterRole cluster-gateway:forssa exists"])?;
    nothing_made()?;
    let role = server.text("clusterrole cluster-gateway:forssa", "/rules/0/resources/0")?;
    ensure!(role == "pods", "{role}");
    server.delete("clusterrole cluster-gateway:forssa")?;
    server.delete("namespace cli-forssa")
}

fn namespace_stays(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "nokia")?;
    let metadata = json!({"name": "settings", "namespace": "cli-nokia"});
    joined.server.create(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})])?;
    let told = ended(&joined.program, &format!("detach nokia {} --yes", joined.member()), 0)?.stderr;
    ensure!(told.contains("Namespace cli-nokia on the member: stays, it holds ConfigMap settings"), "{told}");
    let left = || joined.server.names("serviceaccounts -n cli-nokia");
    let gone = || left().map(|names| !names.iter().any(|name| name.contains("nokia")));
    wait::until_true("the account to be gone", LIMIT, gone)?;
    joined.server.present("configmap settings -n cli-nokia").context("what somebody put there")?;
    let stays = joined.server.field("namespace cli-nokia", "")?;
    ensure!(stays["status"]["phase"] == "Active" && stays["metadata"]["ownerReferences"].is_null(), "{stays}");
    // Without it, the next detach also deletes the namespace.
    ended(&joined.program, &joined.line(), 0)?;
    joined.server.delete("configmap settings -n cli-nokia")?;
    joined.detached()
}

fn insecure(testbed: &Testbed) -> Result<()> {
    let joined = Joined::of(testbed, "imatra");
    let (own, admin) = (testbed.launcher().file("cli-imatra.kubeconfig"), joined.server.kubectl().kubeconfig);
    let mut kubeconfig: Value = serde_json::from_slice(&std::fs::read(&admin)?)?;
    let cluster = kubeconfig["clusters"][0]["cluster"].as_object_mut().context("a cluster")?;
    cluster.remove("certificate-authority").context("a CA")?;
    cluster.insert("insecure-skip-tls-verify".to_owned(), true.into());
    std::fs::write(&own, kubeconfig.to_string())?;
    let line = joined.line().replace(&*admin.to_string_lossy(), &own.to_string_lossy());
    joined.refused(&line, 2, &["skips verification of the member's certificate", "--insecure-skip-tls-verify"])?;
    let made = joined.server.names("clusterrolebindings")?;
    ensure!(!made.iter().any(|name| name.contains("imatra")), "something was made: {made:?}");
    ended(&joined.program, &format!("{line} --insecure-skip-tls-verify"), 0)?;
    let checked = ended(&joined.program, "check imatra", 1)?.stdout;
    ensure!(checked.contains("✗ imatra: its certificate is not verified"), "{checked}");
    joined.detached()
}

/// While one rotate waits, another one registers its token.
fn rotated_at_once(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "ylivieska")?;
    let count = || tokens(joined.server, "cli-ylivieska").map(|names| names.len());
    let token = || registered(&testbed.hub.server, "ylivieska");
    let first = token()?;
    let slow = format!("rotate ylivieska {} --grace 20s", joined.member());
    let quick = format!("rotate ylivieska {} --grace 1s", joined.member());
    std::thread::scope(|scope| -> Result<()> {
        let waiting = scope.spawn(|| ended(&joined.program, &slow, 1));
        wait::until_true("its token", LIMIT, || Ok(count()? == 2))?;
        // Registered, not only created: otherwise, the quick rotate would win.
        wait::until_true("its token on the hub", LIMIT, || Ok(token()? != first))?;
        ended(&joined.program, &quick, 0)?;
        let told = waiting.join().expect("no panic")?.stderr;
        ensure!(told.contains("nothing was revoked") && told.contains("remedy: "), "{told}");
        Ok(())
    })?;
    joined.works()?;
    ended(&joined.program, &quick, 0)?;
    ensure!(count()? == 1, "a token is left over");
    joined.detached()
}
