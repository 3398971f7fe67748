//! Ctrl-C in the middle of commands that have more than one step, and a second try that works. A
//! Ctrl-C before the first step leaves nothing begun.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::{ports, wait};
use kit::member::{FakeMember, MemberOptions, Reply};
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{
    Fixture, clusters, clusters_as, ended, interrupt, joining, member, script, started, test, tokens,
};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "interrupted::a rotate that waits, and the second try", rotate),
        test(fixture, "interrupted::a rename whose cluster does not answer, and the second try", rename),
        test(fixture, "interrupted::a detach half way, and the second try", detach),
        test(fixture, "interrupted::whatever asks a member that says nothing, and the second try", looks),
        test(fixture, "interrupted::whatever asks a hub that says nothing changes nothing", unanswered),
        test(fixture, "interrupted::an install whose hub is slow to answer starts no helm", install),
    ]
}

/// A cluster that is joined for one test.
struct Joined<'a> {
    testbed: &'a Testbed,
    program: Kubectl,
    cluster: &'static str,
}

// === impl Joined ===

impl<'a> Joined<'a> {
    fn new(testbed: &'a Testbed, cluster: &'static str) -> Result<Self> {
        let joined = Self { testbed, program: clusters(testbed), cluster };
        let line = format!("join {cluster} {} --rights view --account-namespace cli-{cluster}", joining(testbed));
        ended(&joined.program, &line, 0)?;
        Ok(joined)
    }

    fn works(&self) -> Result<()> {
        ended(&self.program, &format!("get pods {}", self.cluster), 0).map(drop)
    }

    fn tokens(&self) -> Result<usize> {
        Ok(tokens(&self.testbed.member.server, &format!("cli-{}", self.cluster))?.len())
    }

    fn detached(&self, name: &str) -> Result<()> {
        ended(&self.program, &format!("detach {name} {} --yes", member(self.testbed)), 0)?;
        self.nothing_left()
    }

    fn nothing_left(&self) -> Result<()> {
        wait::until_true("hub and member to be as they were", LIMIT, || {
            let hub = self.testbed.hub.server.names(&format!("secrets -n {SECRET_NAMESPACE}"))?;
            let member = self.testbed.member.server.names("clusterrolebindings,namespaces")?;
            Ok(![hub, member].concat().iter().any(|name| name.contains(self.cluster)))
        })
    }
}

/// Both tokens are valid then. The next rotate revokes both.
fn rotate(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "molde")?;
    let line = |grace: &str| format!("rotate molde {} --grace {grace}", member(testbed));
    let running = started(&joined.program, &line("1m"));
    running.text_with("a new token, registered");
    interrupt(running)?;
    joined.works()?;
    ensure!(joined.tokens()? == 2, "{} tokens", joined.tokens()?);
    let rotated = ended(&joined.program, &line("1s"), 0)?.stdout;
    ensure!(rotated.contains("molde: rotated, 2 old tokens ended"), "{rotated}");
    joined.works()?;
    ensure!(joined.tokens()? == 1, "{} tokens", joined.tokens()?);
    joined.detached("molde")
}

/// Both names are registered then. The old one answers as before.
fn rename(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "narvik")?;
    let (hub, secret) = (&testbed.hub.server, format!("secret narvik -n {SECRET_NAMESPACE}"));
    let lead = |url: &str| hub.patch(&secret, &json!({"stringData": {"endpoint": url}}));
    lead(&format!("https://127.0.0.1:{}", ports::free()?))?;
    let running = started(&joined.program, "rename narvik narvik-1");
    let there = || hub.present(&format!("secret narvik-1 -n {SECRET_NAMESPACE}"));
    wait::until("the new name", LIMIT, there)?;
    interrupt(running)?;
    hub.present(&secret)?;
    lead(&testbed.member.server.url())?;
    wait::until("the cluster to answer again", LIMIT, || joined.works())?;
    ended(&joined.program, "rename narvik narvik-1", 0)?;
    let listed = ended(&joined.program, "list --no-probe -o name", 0)?.stdout;
    let names: Vec<_> = listed.lines().filter(|name| name.starts_with("narvik")).collect();
    ensure!(names == ["narvik-1"], "{listed}");
    ended(&joined.program, "get pods narvik-1", 0)?;
    joined.detached("narvik-1")
}

/// The member's part is gone then, and the hub's is not: an admission webhook that never answers
/// holds up its deletion.
fn detach(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "larvik")?;
    ended(&joined.program, "label larvik cli-held=yes", 0)?;
    let (hub, silent) = (testbed.hub.server.kubectl(), TcpListener::bind("127.0.0.1:0")?);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["secrets"]});
    let hook = json!({"name": "held.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "timeoutSeconds": 30, "rules": [rule],
        "objectSelector": {"matchLabels": {"cli-held": "yes"}},
        "clientConfig": {"url": format!("https://{}/", silent.local_addr()?)}});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "cli-held"}, "webhooks": [hook]});
    testbed.hub.server.create(&[configuration])?;
    let delete = format!("delete secret larvik -n {SECRET_NAMESPACE} --dry-run=server --request-timeout=1s");
    wait::until_true("deletions to be held up", LIMIT, || Ok(hub.args(delete.split(' ')).run()?.status != 0))?;
    let line = format!("detach larvik {} --yes", member(testbed));
    let running = started(&joined.program, &line);
    running.text_with("ClusterRoleBinding cluster-gateway:larvik on the member: removed");
    interrupt(running)?;
    testbed.hub.server.delete("validatingwebhookconfiguration cli-held")?;
    testbed.hub.server.present(&format!("secret larvik -n {SECRET_NAMESPACE}"))?;
    wait::until("deletions to be taken again", LIMIT, || hub.ok(&delete))?;
    ended(&joined.program, &line, 0)?;
    joined.nothing_left()
}

/// Sends Ctrl-C to a command that waits for an answer. It has created nothing, and reports no
/// error.
fn stop(program: &Kubectl, line: &str, asked: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut running = started(program, line);
    asked().with_context(|| line.to_owned())?;
    running.signal("INT");
    let code = running.ended().code();
    ensure!(code == Some(130), "`{line}` ended with {code:?}");
    let told = running.unread_lines().join("\n");
    ensure!(!told.contains("error: ") && !told.contains("panicked"), "`{line}`: {told}");
    Ok(())
}

fn looks(testbed: &Testbed) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let silent = runtime.block_on(FakeMember::start(MemberOptions::default()));
    silent.on_any(|_| Reply::Never);
    let secret = MemberSecret::with_token(&testbed.member.server, "t").at(&silent.url()).trusting(silent.authority());
    testbed.hub.register_member("floro", &secret)?;
    testbed.hub.server.label(&format!("secret floro -n {SECRET_NAMESPACE} cli-silent=yes"))?;
    let program = clusters(testbed);
    for line in ["list -l cli-silent=yes", "list -w -l cli-silent=yes", "get pods floro", "check floro", "probe floro"]
    {
        let before = silent.request_count();
        let asked = || wait::until_true("the member to be asked", LIMIT, || Ok(silent.request_count() > before));
        stop(&program, &format!("{line} --request-timeout 5m"), asked)?;
    }
    testbed.hub.forget_member("floro")?;
    // Ctrl-C while it waits for the next round.
    let mut watching = program.args(["list", "-w", "--interval", "1h"]).start()?;
    ensure!(watching.next_line(LIMIT)?.starts_with("NAME "), "no table");
    watching.signal("INT")?;
    ensure!(watching.wait(LIMIT)? == 130, "the code of shells for Ctrl-C");
    for line in ["list -l cli-silent=yes", &format!("get namespaces {CLUSTER}"), &format!("probe {CLUSTER}")] {
        ended(&program, line, 0)?;
    }
    Ok(())
}

/// The person's own file is unchanged then, and no lock is left on it.
fn unanswered(testbed: &Testbed) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let hub = runtime.block_on(FakeMember::start(MemberOptions::default()));
    hub.on_any(|_| Reply::Never);
    let place = testbed.directory("cli-silent-hub")?;
    let [authority, own, lock] = ["ca.crt", "kubeconfig", "kubeconfig.lock"].map(|name| place.join(name));
    std::fs::write(&authority, hub.ca_pem())?;
    let of_hub = Kubeconfig { server: hub.url(), authority, credential: Credential::Token("admin".into()) };
    let silent = clusters_as(testbed, &of_hub.write(own.clone())?);
    let before = std::fs::read(&own)?;
    let writes = ["label stord a=b", "alias stord Flowers", "alias stord --remove", "kubeconfig --all --merge"];
    for line in ["list", "list -w", "get pods --all", "check", "probe stord"].into_iter().chain(writes) {
        let count = hub.request_count();
        let asked = || wait::until_true("the hub to be asked", LIMIT, || Ok(hub.request_count() > count));
        stop(&silent, &format!("{line} --request-timeout 5m"), asked)?;
        ensure!(std::fs::read(&own)? == before && !lock.exists(), "`{line}` left something behind");
    }
    // With a hub that answers, the same file gets what the first try did not bring.
    std::fs::copy(&testbed.hub.server.kubectl().kubeconfig, &own)?;
    let told = ended(&clusters_as(testbed, &own), &format!("kubeconfig {CLUSTER} --merge"), 0)?.stderr;
    ensure!(told.starts_with("1 context in ") && !lock.exists(), "{told}");
    let joined = Joined::new(testbed, "stord")?;
    for line in &writes[..3] {
        ended(&joined.program, line, 0)?;
    }
    joined.detached("stord")
}

/// Ctrl-C before the hub has answered. A helm that was started then would be killed halfway, and
/// would leave its release locked.
fn install(testbed: &Testbed) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let hub = runtime.block_on(FakeMember::start(MemberOptions::default()));
    hub.on_any(|_| Reply::Never);
    let place = testbed.directory("cli-slow-hub")?;
    let [authority, helm, mark] = ["ca.crt", "helm", "mark"].map(|name| place.join(name));
    std::fs::write(&authority, hub.ca_pem())?;
    let kubeconfig = Kubeconfig { server: hub.url(), authority, credential: Credential::Token("admin".into()) };
    script(&helm, &format!("#!/bin/sh\n: >{}\nexec sleep 100\n", mark.display()))?;
    let program = clusters_as(testbed, &kubeconfig.write(place.join("kubeconfig"))?);
    // A timeout so long that the command still waits for the answer at Ctrl-C.
    let line = format!("install --set image.repository=r/x --request-timeout 5m --helm {}", helm.display());
    let running = started(&program, &line);
    let asked = runtime.block_on(async { hub.next_request().await });
    ensure!(asked.path() == "/version", "{asked:?}");
    interrupt(running)?;
    ensure!(!mark.exists(), "helm was started");
    Ok(())
}
