//! Failures at each step after a join: each is reported with its cause and a remedy and changes
//! nothing, and a second try works.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use kit::process::LoggedProcess;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, clusters, clusters_as, dead, ended, hub_user, joining, member, test};

const LIMIT: Duration = Duration::from_secs(30);
/// Commands for a joined cluster that change nothing on the hub.
const READS: [&str; 5] = ["list", "check", "probe CLUSTER", "get pods --all", "exec-each --all -- true"];
/// Commands that write the cluster's Secret.
const WRITES: [&str; 5] = [
    "label CLUSTER tier=web",
    "alias CLUSTER Name",
    "rotate CLUSTER MEMBER --grace 1s",
    "rename CLUSTER CLUSTER-1",
    "detach CLUSTER MEMBER --yes",
];

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "steps::a hub that is away, and the second try", hub_away),
        test(fixture, "steps::no rights on the hub, and the second try", powerless_on_hub),
        test(fixture, "steps::no rights on the member, and the second try", powerless_on_member),
        test(fixture, "steps::a name that is taken is given to no other cluster", taken),
        test(fixture, "steps::a member that is gone is taken from the hub alone", hub_only),
        test(fixture, "steps::an alias is taken back", unaliased),
        test(fixture, "steps::Ctrl-C ends what runs for each cluster, and the second try", interrupted),
    ]
}

/// Installs the gateway once more, with a helm that reads the hub before it writes.
fn install() -> Result<String> {
    let helm = provide(Tool::Helm)?;
    Ok(format!("install --release cli-never --set image.repository=r/x --helm {}", helm.display()))
}

/// A cluster that is joined for one test.
struct Joined<'a> {
    testbed: &'a Testbed,
    program: Kubectl,
    cluster: &'static str,
    before: String,
}

// === impl Joined ===

impl<'a> Joined<'a> {
    fn new(testbed: &'a Testbed, cluster: &'static str) -> Result<Self> {
        let program = clusters(testbed);
        let line = format!("join {cluster} {} --rights view --account-namespace cli-{cluster}", joining(testbed));
        ended(&program, &line, 0)?;
        let mut joined = Self { testbed, program, cluster, before: String::new() };
        joined.before = joined.state()?;
        Ok(joined)
    }

    fn line(&self, step: &str) -> String {
        step.replace("CLUSTER", self.cluster).replace("MEMBER", &member(self.testbed))
    }

    /// The state of the cluster's Secret, and of its account.
    fn state(&self) -> Result<String> {
        let secret = self.testbed.hub.server.field(&format!("secret {} -n {SECRET_NAMESPACE}", self.cluster), "")?;
        let (metadata, data) = (&secret["metadata"], &secret["data"]);
        let tokens = self.testbed.member.server.names(&format!("secrets -n cli-{}", self.cluster))?;
        Ok(format!("{}{}{data}{tokens:?}", metadata["labels"], metadata["annotations"]))
    }

    /// Checks that `step` fails with these words, and changes nothing.
    fn fails(&self, program: &Kubectl, step: &str, code: i32, parts: &[&str]) -> Result<()> {
        let line = self.line(step);
        let output = ended(program, &line, code)?;
        let told = format!("{}{}", output.stdout, output.stderr);
        for part in parts.iter().chain(&["remedy: "]) {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
        ensure!(self.state()? == self.before, "`{line}` changed something");
        Ok(())
    }

    /// Checks every step for this cluster alone, except the rename, after which the others would
    /// not find it.
    fn works(&self, program: &Kubectl) -> Result<()> {
        let of_one = |step: &&&str| !step.starts_with("rename") && !step.contains("--all");
        for step in READS.iter().chain(&WRITES).filter(of_one) {
            // Because of other tests' clusters, a check of all may fail.
            let step = if *step == "check" { "check CLUSTER" } else { step };
            ended(program, &self.line(step), 0)?;
        }
        self.gone()
    }

    fn detached(&self) -> Result<()> {
        ended(&self.program, &self.line("detach CLUSTER MEMBER --yes"), 0)?;
        self.gone()
    }

    fn gone(&self) -> Result<()> {
        wait::until_true("the member to be as it was", LIMIT, || {
            let left = self.testbed.member.server.names("clusterrolebindings,namespaces")?;
            Ok(!left.iter().any(|name| name.contains(self.cluster)))
        })
    }
}

fn hub_away(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "halden")?;
    let away = dead(testbed, "halden")?;
    let program = clusters_as(testbed, &away);
    for step in READS.iter().chain(&WRITES).copied().chain([&*install()?]) {
        joined.fails(&program, step, 3, &["refused", "the hub's address"])?;
    }
    joined.works(&joined.program)
}

fn powerless_on_hub(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "moss")?;
    let token = testbed.hub.create_user("cli-moss", &["moss"], &["get", "create"])?;
    let program = clusters_as(testbed, &hub_user(testbed, "moss", &token)?);
    for step in WRITES {
        let step = format!("{step} --clusters-namespace {SECRET_NAMESPACE}");
        joined.fails(&program, &step, 3, &["secrets", "forbidden"])?;
    }
    joined.fails(&program, &install()?, 3, &["helm: ", "secrets is forbidden", "an administrator of the hub"])?;
    testbed.hub.server.bind("cli-moss-all", "cluster-admin", ("default", "cli-moss"))?;
    wait::until("the rights", LIMIT, || ended(&program, &joined.line("label CLUSTER a=b"), 0))?;
    joined.works(&program)?;
    testbed.hub.server.delete("clusterrolebinding cli-moss-all")
}

fn powerless_on_member(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "horten")?;
    let server = &testbed.member.server;
    let token = server.service_account_token("default", "cli-horten-nobody")?;
    let nobody = server.kubeconfig("cli-horten-nobody", Credential::Token(token))?;
    for step in ["rotate CLUSTER", "detach CLUSTER --yes"] {
        let step = format!("{step} --member-kubeconfig {}", nobody.display());
        joined.fails(&joined.program, &step, 1, &["member: ", "is forbidden"])?;
    }
    let missing = "--member-kubeconfig /nowhere.yaml";
    for step in ["rotate CLUSTER", "detach CLUSTER --yes"] {
        joined.fails(&joined.program, &format!("{step} {missing}"), 2, &["/nowhere.yaml"])?;
    }
    joined.works(&joined.program)
}

fn taken(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "tonsberg")?;
    joined.fails(&joined.program, &format!("rename CLUSTER {CLUSTER}"), 2, &[CLUSTER, "another name"])?;
    for wrong in ["Upper", "a/b"] {
        joined.fails(&joined.program, &format!("rename CLUSTER {wrong}"), 2, &["is not a cluster name"])?;
    }
    joined.fails(&joined.program, "rename tonsberg-0 tonsberg-1", 1, &["no cluster tonsberg-0 is registered"])?;
    let sourced = |source: Value| {
        let line = format!("secret tonsberg -n {SECRET_NAMESPACE}");
        testbed.hub.server.patch(&line, &json!({"metadata": {"labels": {"cluster.core.oam.dev/source": source}}}))
    };
    sourced("capi".into())?;
    let refused = ended(&joined.program, "rename tonsberg tonsberg-1", 2)?.stderr;
    ensure!(refused.contains("the source capi") && refused.contains("nameTemplates.capi"), "{refused}");
    sourced(Value::Null)?;
    ended(&joined.program, "rename tonsberg tonsberg-1", 0)?;
    ended(&joined.program, "get pods tonsberg-1", 0)?;
    ended(&joined.program, &format!("detach tonsberg-1 {} --yes", member(testbed)), 0)?;
    joined.gone()
}

/// What `join` created on the member stays there, for a person that can still reach it.
fn hub_only(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "skien")?;
    let both = joined.line("detach CLUSTER MEMBER --hub-only --yes");
    let refused = ended(&joined.program, &both, 2)?.stderr;
    ensure!(refused.contains("--hub-only"), "{refused}");
    let told = ended(&joined.program, "detach skien --hub-only --yes", 0)?;
    ensure!(told.stderr.contains("on the member: nothing") && told.stdout.contains("skien detached"), "{told:?}");
    ensure!(!told.stderr.contains("on the member: removed"), "{told:?}");
    let left = testbed.hub.server.names(&format!("secrets -n {SECRET_NAMESPACE}"))?;
    ensure!(!left.iter().any(|name| name.contains("skien")), "{left:?}");
    let stays = testbed.member.server.names("clusterrolebindings,namespaces")?;
    ensure!(stays.iter().filter(|name| name.contains("skien")).count() == 2, "{stays:?}");
    ended(&joined.program, "detach skien --hub-only --yes", 1)?;
    joined.detached()
}

fn unaliased(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "porsgrunn")?;
    let alias = || -> Result<String> {
        let listed = ended(&joined.program, "list --no-probe -o json", 0)?.stdout;
        let listed: Value = serde_json::from_str(&listed)?;
        let mut rows = listed["clusters"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["name"] == "porsgrunn");
        Ok(row.map(|row| row["alias"].as_str().unwrap_or_default().to_owned()).unwrap_or_default())
    };
    ended(&joined.program, "alias porsgrunn Port", 0)?;
    ensure!(alias()? == "Port", "{}", alias()?);
    ended(&joined.program, "alias porsgrunn Port --remove", 2)?;
    let told = ended(&joined.program, "alias porsgrunn --remove", 0)?.stdout;
    ensure!(told == "cluster porsgrunn has no alias\n" && alias()?.is_empty(), "{told}");
    ensure!(joined.state()? == joined.before, "an empty alias stays");
    joined.detached()
}

fn interrupted(testbed: &Testbed) -> Result<()> {
    let joined = Joined::new(testbed, "sarpsborg")?;
    let file: PathBuf = testbed.launcher().file("cli-sarpsborg.pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let mut command = Command::new(&joined.program.binary);
    command.args(["exec-each", "sarpsborg", "--", "sh", "-c", &script]).env("KUBECONFIG", &joined.program.kubeconfig);
    let mut running = LoggedProcess::start(&mut command);
    let id = wait::until("what runs for the cluster", LIMIT, || Ok(std::fs::read_to_string(&file)?))?;
    running.signal("INT");
    ensure!(running.ended().code() == Some(130), "the code of shells for Ctrl-C");
    wait::until_true("its end", LIMIT, || Ok(has_ended(id.trim())))?;
    ended(&joined.program, "exec-each sarpsborg -- true", 0)?;
    joined.detached()
}

/// Whether the process is gone, or is a zombie that waits for its parent.
fn has_ended(id: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return true };
    // The state comes after the name, which is in parentheses and may contain others.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
