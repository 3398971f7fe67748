//! `kubeconfig` and `exec-each`.

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, CLUSTER_X509, Testbed};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fixture::{Fixture, clusters, clusters_as, ended, hub_user, rule, test};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "kubeconfig::contexts go through the hub and hold no credential", contexts),
        test(fixture, "kubeconfig::one user for many, and members that nobody verifies, only when said", said),
        test(fixture, "exec-each::a command of this machine runs for each cluster", exec_each),
        test(fixture, "exec-each::what outlives its kubeconfig is ended, and never led to the hub", outlived),
    ]
}

fn contexts(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("cli-contexts", &[], ALL_VERBS)?;
    let own = hub_user(testbed, "contexts", &token)?;
    let program = clusters_as(testbed, &own);
    let printed = ended(&program, &format!("kubeconfig {CLUSTER}"), 0)?.stdout;
    ensure!(printed.contains(&Testbed::proxy_path(CLUSTER)) && !printed.contains("token"), "{printed}");
    // In a file of its own, next to the person's.
    let file = testbed.launcher().file("cli-contexts-made.yaml");
    let told = ended(&program, &format!("kubeconfig {CLUSTER} --prefix hub/ -o {}", file.display()), 0)?.stderr;
    ensure!(told.starts_with("1 context in "), "{told}");
    let both = format!("{}:{}", file.display(), own.display());
    let kubectl = testbed.hub.server.kubectl();
    let seen = kubectl
        .args(["--context", &format!("hub/{CLUSTER}"), "get", "namespaces", "-o", "name"])
        .env("KUBECONFIG", &both)
        .run()?;
    ensure!(seen.success()?.contains("namespace/kube-system"), "the member's namespaces");
    // Merged into the person's file, twice.
    for _ in 0..2 {
        let told = ended(&program, &format!("kubeconfig {CLUSTER},{CLUSTER_X509} --merge"), 0)?.stderr;
        ensure!(told.starts_with("2 contexts in "), "{told}");
    }
    let merged = testbed.launcher().kubectl(&own);
    ensure!(merged.ok(&format!("--context {CLUSTER_X509} get namespaces -o name"))?.contains("kube-system"), "merged");
    ensure!(merged.ok("config current-context")?.trim() == "it", "the current context changed");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&own)?.permissions());
    ensure!(mode & 0o777 == 0o600, "others may read it: {mode:o}");
    // Directly to the member, as another user of the same kubeconfig.
    let nobody = ended(&program, &format!("kubeconfig {CLUSTER} --direct --user gone"), 2)?.stderr;
    ensure!(nobody.contains("no user \"gone\"") && nobody.contains("remedy: "), "{nobody}");
    merged.ok(&format!("config set-credentials member --token={}", testbed.member_token))?;
    let unsaid = ended(&program, &format!("kubeconfig {CLUSTER} --direct"), 2)?.stderr;
    ensure!(unsaid.contains("--user <NAME>"), "{unsaid}");
    let hubs = ended(&program, &format!("kubeconfig {CLUSTER} --direct --user it"), 2)?.stderr;
    ensure!(hubs.contains("\"it\" is your user of the hub") && hubs.contains("remedy: "), "{hubs}");
    let line = format!("kubeconfig {CLUSTER} --direct --user member --prefix direct/ --merge");
    let many = ended(&program, &line.replacen(CLUSTER, &format!("{CLUSTER},{CLUSTER_X509}"), 1), 2)?.stderr;
    ensure!(many.contains("2 clusters would all get the credential of \"member\""), "{many}");
    let blind = ended(&program, &line, 1)?.stderr;
    ensure!(blind.contains("is forbidden") && blind.contains("for the verb get on clustergateways"), "{blind}");
    let sees = json!([rule("cluster.core.oam.dev", &["clustergateways"], &["get"])]);
    testbed.hub.server.grant("cli-contexts-sees", None, &sees, ("default", "cli-contexts"))?;
    wait::until("the right to see it", LIMIT, || ended(&program, &line, 0))?;
    let direct = format!("--context direct/{CLUSTER}");
    ensure!(merged.ok(&format!("{direct} get namespaces -o name"))?.contains("kube-system"), "directly");
    let server = merged.ok(&format!("{direct} config view --minify -o jsonpath={{.clusters[0].cluster.server}}"))?;
    ensure!(server == testbed.member.server.url(), "{server}");
    merged.ok(&format!("config set-cluster {CLUSTER} --server=https://elsewhere"))?;
    not_shadowed(testbed, &program, &own)
}

/// What `--direct` does only if a flag says so.
fn said(testbed: &Testbed) -> Result<()> {
    let own = testbed.launcher().file("cli-said.kubeconfig");
    std::fs::copy(&testbed.hub.server.kubectl().kubeconfig, &own)?;
    let merged = testbed.launcher().kubectl(&own);
    merged.ok(&format!("config set-credentials member --token={}", testbed.member_token))?;
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).document("said-blind");
    testbed.hub.apply(&[unverified(member)])?;
    let program = clusters_as(testbed, &own);
    let both = format!("kubeconfig {CLUSTER},{CLUSTER_X509} --direct --user member --prefix both/ --merge");
    ended(&program, &both, 2)?;
    let told = ended(&program, &format!("{both} --one-user"), 0)?.stderr;
    ensure!(told.starts_with("2 contexts in "), "{told}");
    let blind = "kubeconfig said-blind --direct --user member --prefix blind/ --merge";
    let refused = ended(&program, blind, 2)?.stderr;
    ensure!(refused.contains("identity of said-blind") && refused.contains("--insecure"), "{refused}");
    ensure!(!merged.ok("config get-contexts -o name")?.contains("blind/"), "a context was made");
    ended(&program, &format!("{blind} --insecure"), 0)?;
    for context in [format!("both/{CLUSTER}"), format!("both/{CLUSTER_X509}"), "blind/said-blind".to_owned()] {
        let seen = merged.ok(&format!("--context {context} get namespaces -o name"))?;
        let view = merged.ok(&format!("--context {context} config view --minify"))?;
        ensure!(seen.contains("kube-system") && view.contains(&testbed.member.server.url()), "{view}");
        ensure!(view.contains("insecure-skip-tls-verify: true") == context.starts_with("blind/"), "{view}");
    }
    testbed.hub.forget_member("said-blind")
}

/// The Secret of a cluster, changed so that the gateway does not verify the member's certificate.
fn unverified(mut secret: Value) -> Value {
    let keys =
        ["data", "stringData"].map(|field| secret[field].as_object().is_some_and(|of| of.contains_key("ca.crt")));
    for (field, has) in ["data", "stringData"].into_iter().zip(keys) {
        if has && let Some(of) = secret[field].as_object_mut() {
            of.remove("ca.crt");
        }
    }
    secret["stringData"]["insecure-skip-tls-verify"] = json!("true");
    secret
}

/// No context shadows an existing one: neither in the same file, nor in another file of
/// `KUBECONFIG`.
fn not_shadowed(testbed: &Testbed, program: &Kubectl, own: &Path) -> Result<()> {
    let file = testbed.launcher().file("cli-contexts-beside.yaml");
    let first = testbed.launcher().file("cli-contexts-first.yaml");
    let beside = |line: &str| -> Result<()> {
        let both = format!("{}:{}", first.display(), own.display());
        let told = program.args(line.split(' ')).env("KUBECONFIG", &both).run()?;
        let is_told = told.stderr.contains("already has another") && told.stderr.contains("--prefix");
        ensure!(told.status == 2 && is_told, "{told:?}");
        Ok(())
    };
    std::fs::write(&first, "")?;
    beside(&format!("kubeconfig {CLUSTER} --merge"))?;
    beside(&format!("kubeconfig {CLUSTER} -o {}", file.display()))?;
    ensure!(std::fs::read_to_string(&first)?.is_empty(), "something was written");
    let users = ended(program, &format!("kubeconfig {CLUSTER} --prefix x/ -o {}", own.display()), 2)?.stderr;
    ensure!(users.contains("holds users") && users.contains("--merge"), "{users}");
    // With kubectl's lock on the file.
    let lock = PathBuf::from(format!("{}.lock", own.display()));
    std::fs::write(&lock, "")?;
    let locked = ended(program, &format!("kubeconfig {CLUSTER} --prefix x/ --merge"), 1)?.stderr;
    ensure!(locked.contains("another process is changing") && locked.contains("remedy: "), "{locked}");
    std::fs::remove_file(&lock)?;
    ended(program, &format!("kubeconfig {CLUSTER} --prefix x/ --merge"), 0)?;
    ensure!(!lock.exists(), "the lock stays");
    ended(program, &format!("kubeconfig {CLUSTER} --merge --force"), 0).map(drop)
}

fn exec_each(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let kubectl = testbed.hub.server.kubectl().binary;
    let both = format!("{CLUSTER_X509},{CLUSTER}");
    let line = format!("exec-each {both} -- {} get namespace kube-system -o name", kubectl.display());
    let out = ended(&program, &line, 0)?.stdout;
    ensure!(
        out == format!("==> {CLUSTER} <==\nnamespace/kube-system\n==> {CLUSTER_X509} <==\nnamespace/kube-system\n"),
        "{out}"
    );
    let script = format!("echo $CLUSTER; test $CLUSTER = {CLUSTER}");
    let some = program.args(["exec-each", &both, "--prefix", "--", "sh", "-c", &script]).run()?;
    ensure!(
        some.status == 1 && some.stdout == format!("{CLUSTER}: {CLUSTER}\n{CLUSTER_X509}: {CLUSTER_X509}\n"),
        "{some:?}"
    );
    ensure!(
        some.stderr.contains(&format!("error: cluster {CLUSTER_X509}: the command ended with exit code 1")),
        "{some:?}"
    );
    let late = program.args(["exec-each", CLUSTER, "--timeout", "200ms", "--", "sleep", "30"]).run()?;
    ensure!(late.status == 1 && late.stderr.contains("within 200ms"), "{late:?}");
    let absent = ended(&program, &format!("exec-each {CLUSTER} -- no-such-program"), 1)?.stderr;
    ensure!(absent.contains("cannot run no-such-program"), "{absent}");
    Ok(())
}

fn outlived(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let kubectl = testbed.hub.server.kubectl().binary;
    // Processes that the command started end with it: at its timeout, and when it leaves them
    // behind.
    for (word, code) in [("wait", 1), ("true", 0)] {
        let file = testbed.launcher().file(&format!("cli-outlived-{word}"));
        let script = format!("sleep 300 >/dev/null 2>&1 & echo $! > {}; {word}", file.display());
        let ended = program.args(["exec-each", CLUSTER, "--timeout", "2s", "--", "sh", "-c", &script]).run()?;
        ensure!(ended.status == code, "{ended:?}");
        let process = std::fs::read_to_string(&file)?.trim().to_owned();
        wait::until_true("what it started to be gone", LIMIT, || {
            let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            Ok(status.is_empty() || status.contains(") Z "))
        })?;
    }
    // A process that has left the group is not led to the hub when its kubeconfig is gone.
    let file = testbed.launcher().file("cli-outlived-context");
    let script = format!(
        "touch {1}.left; while test -e ${{KUBECONFIG%%:*}}; do sleep 0.05; done; \
         {} config current-context > {1}.part 2>&1; mv {1}.part {1}",
        kubectl.display(),
        file.display()
    );
    // The command waits until the process has left: before that, it would end with the group.
    let left = file.display();
    let script = format!("setsid sh -c '{script}' >/dev/null 2>&1 & until test -e {left}.left; do sleep 0.05; done");
    let left = program.args(["exec-each", CLUSTER, "--", "sh", "-c", &script]).run()?;
    ensure!(left.status == 0, "{left:?}");
    let told = wait::until("what it asks", LIMIT, || Ok(std::fs::read_to_string(&file)?))?;
    ensure!(told.contains("current-context is not set"), "it is led to {told}");
    Ok(())
}
