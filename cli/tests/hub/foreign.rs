//! Commands do not touch what belongs to others: accounts of other hubs and clusters, whatever a
//! cluster's Secret says; agents that others installed; namespaces with more in them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, clusters, ended, member, test};

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
    admin: Kubectl,
    cluster: &'static str,
}

// === impl Joined ===

impl<'a> Joined<'a> {
    fn of(testbed: &'a Testbed, cluster: &'static str) -> Self {
        Self { testbed, program: clusters(testbed), admin: testbed.member.server.kubectl(), cluster }
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
    let hub = testbed.hub.server.kubectl();
    // The agents of another cluster, and an account that belongs to no cluster.
    for (account, binding) in [("tunnel-agent-raisio", "tunnel-agent-raisio"), ("other", "auth-delegator")] {
        hub.ok(&format!("create serviceaccount {account} -n {SECRET_NAMESPACE}"))?;
        let subject = format!("--clusterrole=view --serviceaccount={SECRET_NAMESPACE}:{account}");
        hub.ok(&format!("create clusterrolebinding cluster-gateway:{binding} {subject}"))?;
    }
    // The objects that a rotation would write to.
    joined.admin.ok("create secret generic tunnel-agent -n cli-turku --from-literal=token=old")?;
    joined.admin.ok("create deployment tunnel-agent -n cli-turku --image=none --replicas=0")?;
    let key = "cluster.core.oam.dev/agent-account";
    for told in [format!("{SECRET_NAMESPACE}/tunnel-agent-raisio"), "x/auth-delegator".to_owned()] {
        joined.annotate(key, &told)?;
        for line in ["rotate turku", "detach turku --yes"] {
            joined.refused(&format!("{line} {}", joined.member()), 2, &[&told, "tunnel-agent-turku", key])?;
        }
    }
    let token = joined.admin.ok("get secret tunnel-agent -n cli-turku -o go-template={{.data.token|base64decode}}")?;
    ensure!(token == "old", "a token was written");
    let secrets = hub.ok(&format!("get secrets -n {SECRET_NAMESPACE} -o name"))?;
    ensure!(!secrets.contains("raisio"), "a token was made: {secrets}");
    hub.ok("get clusterrolebinding cluster-gateway:auth-delegator cluster-gateway:tunnel-agent-raisio")?;
    joined.works()?;
    testbed
        .hub
        .server
        .delete("clusterrolebinding cluster-gateway:auth-delegator cluster-gateway:tunnel-agent-raisio")?;
    testbed.hub.server.delete(&format!("serviceaccount tunnel-agent-raisio other -n {SECRET_NAMESPACE}"))?;
    testbed.hub.server.annotate(&format!("secret turku -n {SECRET_NAMESPACE} {key}-"))?;
    joined.admin.ok("delete secret/tunnel-agent deployment/tunnel-agent -n cli-turku")?;
    joined.detached()
}

fn another_hub(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "kerava")?;
    let binding = "clusterrolebinding cluster-gateway:kerava";
    let uid = testbed.hub.server.kubectl().ok("get namespace kube-system -o jsonpath={.metadata.uid}")?;
    let own = joined.admin.ok(&format!("get {binding} -o jsonpath={{.metadata.annotations}}"))?;
    ensure!(own.contains(&format!("{uid}/kerava")), "whose it is: {own}");
    // As another hub would have created it.
    joined.admin.ok(&format!("annotate {binding} --overwrite {JOINED_BY}=another-hub/kerava"))?;
    let higher = joined.line().replace("view", "cluster-admin");
    let foreign = "created for another hub";
    joined.refused(&higher, 2, &["ClusterRoleBinding cluster-gateway:kerava", foreign, "another name"])?;
    joined.refused(&format!("rotate kerava {}", joined.member()), 2, &[foreign])?;
    joined.refused(&format!("detach kerava {} --yes", joined.member()), 2, &[foreign, "--hub-only"])?;
    let role = joined.admin.ok(&format!("get {binding} -o jsonpath={{.roleRef.name}}"))?;
    ensure!(role == "view", "the other hub's rights are {role}");
    joined.works()?;
    joined.admin.ok(&format!("annotate {binding} --overwrite {JOINED_BY}={uid}/kerava"))?;
    joined.detached()
}

fn one_account_one_cluster(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "lohja")?;
    ended(&joined.program, "rename lohja lohja-1", 0)?;
    // Under the old name, with the account that the cluster under the new name uses.
    let parts = ["cluster lohja-1 uses the ServiceAccount cli-lohja/lohja", "another name"];
    joined.refused(&joined.line().replace("view", "cluster-admin"), 2, &parts)?;
    let role = joined.admin.ok("get clusterrolebinding cluster-gateway:lohja -o jsonpath={.roleRef.name}")?;
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
    let hub = testbed.hub.server.kubectl();
    // By mistake, the person's context leads to another cluster, which has an account of the same
    // name.
    hub.ok("create clusterrolebinding cluster-gateway:vantaa --clusterrole=view --serviceaccount=cli-vantaa:vantaa")?;
    hub.ok(&format!(
        "label clusterrolebinding cluster-gateway:vantaa {}",
        "app.kubernetes.io/managed-by=kubectl-clusters"
    ))?;
    let elsewhere = format!("--member-kubeconfig {}", hub.kubeconfig.display());
    for line in ["rotate vantaa", "detach vantaa --yes"] {
        joined.refused(&format!("{line} {elsewhere}"), 2, &["another member", "--member-context"])?;
    }
    testbed.hub.server.delete("clusterrolebinding cluster-gateway:vantaa")?;
    joined.works()?;
    joined.detached()
}

fn not_overwritten(testbed: &Testbed) -> Result<()> {
    let joined = Joined::of(testbed, "forssa");
    let (admin, authority) = (&joined.admin, testbed.tunnel.serving_authority_file());
    let (helm, chart) = (provide(Tool::Helm)?, Chart::Agent.directory());
    let tunnel = format!(
        "{} --tunnel --server 127.0.0.1:1 --server-ca {} --agent-chart {} --helm {} --wait 1s",
        joined.line_anyhow(),
        authority.display(),
        chart.display(),
        helm.display()
    );
    let nothing_made = || -> Result<()> {
        let made = admin.ok("get clusterrolebindings -o name")?;
        ensure!(!made.contains("forssa"), "something was made: {made}");
        Ok(())
    };
    admin.ok("create namespace cli-forssa")?;
    for (create, kind) in [
        ("create secret generic tunnel-agent --from-literal=token=own", "Secret"),
        ("create deployment tunnel-agent --image=own --replicas=0", "Deployment"),
    ] {
        admin.ok(&format!("{create} -n cli-forssa"))?;
        let what = format!("the {kind} cli-forssa/tunnel-agent exists");
        joined.refused(&tunnel, 2, &[&what, "--account-namespace"])?;
        nothing_made()?;
        admin.ok(&format!("delete {kind} tunnel-agent -n cli-forssa"))?;
    }
    // A custom role is written by force, but not over another's.
    admin.ok("create clusterrole cluster-gateway:forssa --verb=get --resource=pods")?;
    let rules = testbed.launcher().file("cli-forssa.yaml");
    std::fs::write(&rules, "kind: ClusterRole\nrules:\n- {apiGroups: [''], resources: [secrets], verbs: [list]}\n")?;
    let line = joined.line().replace("view", &rules.to_string_lossy());
    joined.refused(&line, 2, &["ClusterRole cluster-gateway:forssa exists"])?;
    nothing_made()?;
    let role = admin.ok("get clusterrole cluster-gateway:forssa -o jsonpath={.rules[0].resources[0]}")?;
    ensure!(role == "pods", "{role}");
    admin.ok("delete clusterrole cluster-gateway:forssa")?;
    admin.ok("delete namespace cli-forssa").map(drop)
}

fn namespace_stays(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "nokia")?;
    joined.admin.ok("create configmap settings -n cli-nokia --from-literal=a=b")?;
    let told = ended(&joined.program, &format!("detach nokia {} --yes", joined.member()), 0)?.stderr;
    ensure!(told.contains("Namespace cli-nokia on the member: stays, it holds ConfigMap settings"), "{told}");
    let gone = || joined.admin.ok("get serviceaccounts -n cli-nokia -o name").map(|left| !left.contains("nokia"));
    wait::until_true("the account to be gone", LIMIT, gone)?;
    joined.admin.ok("get configmap settings -n cli-nokia").context("what somebody put there")?;
    let phase = joined.admin.ok("get namespace cli-nokia -o jsonpath={.status.phase}{.metadata.ownerReferences}")?;
    ensure!(phase == "Active", "{phase}");
    // Without it, the next detach also deletes the namespace.
    ended(&joined.program, &joined.line(), 0)?;
    joined.admin.ok("delete configmap settings -n cli-nokia")?;
    joined.detached()
}

fn insecure(testbed: &Testbed) -> Result<()> {
    let joined = Joined::of(testbed, "imatra");
    let own = testbed.launcher().file("cli-imatra.kubeconfig");
    std::fs::copy(&joined.admin.kubeconfig, &own)?;
    let kubectl = testbed.launcher().kubectl(&own);
    let cluster = kubectl.ok("config view -o jsonpath={.clusters[0].name}")?;
    kubectl.ok(&format!("config unset clusters.{cluster}.certificate-authority"))?;
    kubectl.ok(&format!("config set clusters.{cluster}.insecure-skip-tls-verify true"))?;
    let line = joined.line().replace(&*joined.admin.kubeconfig.to_string_lossy(), &own.to_string_lossy());
    joined.refused(&line, 2, &["skips verification of the member's certificate", "--insecure-skip-tls-verify"])?;
    ensure!(!joined.admin.ok("get clusterrolebindings -o name")?.contains("imatra"), "something was made");
    ended(&joined.program, &format!("{line} --insecure-skip-tls-verify"), 0)?;
    let checked = ended(&joined.program, "check imatra", 1)?.stdout;
    ensure!(checked.contains("✗ imatra: its certificate is not verified"), "{checked}");
    joined.detached()
}

/// While one rotate waits, another one registers its token.
fn rotated_at_once(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "ylivieska")?;
    let hub = testbed.hub.server.kubectl();
    let list = "get secrets -n cli-ylivieska --field-selector type=kubernetes.io/service-account-token -o name";
    let token = format!("get secret ylivieska -n {SECRET_NAMESPACE} -o jsonpath={{.data.token}}");
    let first = hub.ok(&token)?;
    let slow = format!("rotate ylivieska {} --grace 20s", joined.member());
    let quick = format!("rotate ylivieska {} --grace 1s", joined.member());
    std::thread::scope(|scope| -> Result<()> {
        let waiting = scope.spawn(|| ended(&joined.program, &slow, 1));
        wait::until_true("its token", LIMIT, || Ok(joined.admin.ok(list)?.lines().count() == 2))?;
        // Registered, not only created: otherwise, the quick rotate would win.
        wait::until_true("its token on the hub", LIMIT, || Ok(hub.ok(&token)? != first))?;
        ended(&joined.program, &quick, 0)?;
        let told = waiting.join().expect("no panic")?.stderr;
        ensure!(told.contains("nothing was revoked") && told.contains("remedy: "), "{told}");
        Ok(())
    })?;
    joined.works()?;
    ended(&joined.program, &quick, 0)?;
    ensure!(joined.admin.ok(list)?.lines().count() == 1, "a token is left over");
    joined.detached()
}
