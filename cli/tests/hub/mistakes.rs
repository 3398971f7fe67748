//! Failures of a join: each is reported with its cause and a remedy, and a second try works.

mod matrix;
mod tunnel;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, Testbed};
use hub_tests::tools::{Tool, provide};
use hub_tests::{ports, wait};
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, account, clusters, clusters_as, dead, ended, hub_user, interrupt, rule, started, test};

const LIMIT: Duration = Duration::from_mins(1);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "mistakes::every command by a kubeconfig that is of no use", matrix::looks),
        test(fixture, "mistakes::a wrong kubeconfig or name, and the second try", wrong_words),
        test(fixture, "mistakes::no rights on the hub, and the second try", no_rights),
        test(fixture, "mistakes::a credential that is void or a hub that is away, and the second try", unusable),
        test(fixture, "mistakes::Ctrl-C in the middle of a join, and the second try", interrupted),
        test(fixture, "mistakes::a join that fails half way is completed, or taken back", half_done),
        test(fixture, "mistakes::an agent's join with what is void, away or taken", tunnel::unusable),
        test(fixture, "mistakes::an agent's join that prints applies nothing, and its print links", tunnel::printed),
        test(fixture, "mistakes::Ctrl-C in an agent's join and its rotate, and the second try", tunnel::interrupted),
    ]
}

/// A member that is to be joined as `cluster`, in a namespace of its own.
struct Joining<'a> {
    testbed: &'a Testbed,
    program: Kubectl,
    cluster: &'static str,
}

// === impl Joining ===

impl<'a> Joining<'a> {
    fn of(testbed: &'a Testbed, cluster: &'static str) -> Self {
        Self { testbed, program: clusters(testbed), cluster }
    }

    fn admin(&self) -> PathBuf {
        self.testbed.member.server.kubectl().kubeconfig
    }

    fn line(&self, member: &Path) -> String {
        format!("{} --endpoint {}", self.line_anyhow(member), self.testbed.member.server.url())
    }

    /// The command line without an endpoint.
    fn line_anyhow(&self, member: &Path) -> String {
        let cluster = self.cluster;
        format!(
            "join {cluster} --member-kubeconfig {} --rights view --account-namespace cli-{cluster}",
            member.display()
        )
    }

    /// Checks that a try fails with `code`, cause and remedy, and leaves nothing on hub or member.
    fn fails(&self, program: &Kubectl, line: &str, code: i32, parts: &[&str]) -> Result<()> {
        let told = ended(program, line, code)?.stderr;
        ensure!(told.contains("error: ") && told.contains("remedy: "), "`{line}`: {told}");
        for part in parts {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
        ensure!(!self.is_there()?, "`{line}` left something behind");
        Ok(())
    }

    /// Checks tries that fail because hub or member cannot be asked: with an invalid credential,
    /// and where nothing listens. `line` joins with the member's kubeconfig.
    fn fails_unasked(&self, line: impl Fn(&Path) -> Result<String>) -> Result<()> {
        let (testbed, own) = (self.testbed, line(&self.admin())?);
        let stranger = clusters_as(testbed, &hub_user(testbed, &format!("{}-void", self.cluster), "no-such-token")?);
        self.fails(&stranger, &own, 3, &["renew the credential in your kubeconfig"])?;
        let dead = dead(testbed, self.cluster)?;
        self.fails(&clusters_as(testbed, &dead), &own, 3, &["refused", "the hub's address"])?;
        self.fails(&self.program, &line(&dead)?, 1, &["member: ", "kube-system"])?;
        let void = line(&void(testbed, self.cluster)?)?;
        wait::until("the token to be void", LIMIT, || {
            self.fails(&self.program, &void, 1, &["member: ", "Unauthorized", "renew the credential for the member"])
        })
    }

    fn is_there(&self) -> Result<bool> {
        let line = format!("secrets,serviceaccounts,clusterrolebindings -n {SECRET_NAMESPACE}");
        let (hub, member) = (self.testbed.hub.server.names(&line)?, &self.testbed.member.server);
        let all = [hub, member.names("clusterrolebindings,namespaces")?].concat();
        Ok(all.iter().any(|name| name.ends_with(self.cluster)))
    }

    /// Checks that the join works, and detaches the cluster.
    fn works(&self) -> Result<()> {
        let (cluster, admin) = (self.cluster, self.admin());
        ended(&self.program, &self.line(&admin), 0)?;
        ended(&self.program, &format!("get pods {cluster}"), 0)?;
        self.detached()
    }

    fn detached(&self) -> Result<()> {
        let line = format!("detach {} --member-kubeconfig {} --yes", self.cluster, self.admin().display());
        ended(&self.program, &line, 0)?;
        wait::until_true("hub and member to be as they were", LIMIT, || Ok(!self.is_there()?))
    }
}

fn wrong_words(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "vaasa");
    let (program, admin) = (&joining.program, joining.admin());
    let line = joining.line(&admin);
    let garbage = testbed.launcher().file("cli-garbage.yaml");
    std::fs::write(&garbage, "clusters: [")?;
    joining.fails(program, &joining.line(Path::new("/nowhere.yaml")), 2, &["/nowhere.yaml", "--kubeconfig"])?;
    joining.fails(program, &joining.line(&garbage), 2, &["cli-garbage.yaml", "kubectl config view"])?;
    joining.fails(program, &format!("{line} --member-context prod"), 2, &["no context \"prod\""])?;
    joining.fails(program, &format!("{line} --kubeconfig /nowhere.yaml"), 2, &["/nowhere.yaml"])?;
    joining.fails(program, &line.replace("view", "root"), 2, &["no such role", "cluster-admin"])?;
    joining.works()?;
    // An account of that name that somebody else created.
    let member = &testbed.member.server;
    member.create(&[account("default", "vaasa")])?;
    let foreign = line.replace("cli-vaasa", "default");
    let told = ["ServiceAccount default/vaasa exists", "--account-namespace"];
    joining.fails(program, &foreign, 2, &told)?;
    member.delete("serviceaccount vaasa -n default")?;
    ended(program, &foreign, 0)?;
    joining.detached()?;
    member.present("namespace default").context("a namespace that was there before stays")?;
    // With a name that another member has.
    let hub = testbed.hub.server.kubectl().kubeconfig;
    let taken =
        format!("join {CLUSTER} --member-kubeconfig {} --rights view --endpoint https://10.0.0.7", hub.display());
    joining.fails(program, &taken, 2, &["is taken", "another name", "detach"])?;
    joining.works()
}

fn no_rights(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "lahti");
    let line = format!("{} --clusters-namespace {SECRET_NAMESPACE}", joining.line(&joining.admin()));
    let token = testbed.hub.create_user("cli-nobody-yet", &[], ALL_VERBS)?;
    let program = clusters_as(testbed, &hub_user(testbed, "nobody-yet", &token)?);
    let remedy = |verb: &str| format!("ask the hub's administrator for the verb {verb} on secrets");
    joining.fails(&program, &line, 3, &["is forbidden", &remedy("get")])?;
    // The right to read does not suffice: nothing is created on the member for a Secret that cannot
    // be written.
    let (hub, nobody) = (&testbed.hub.server, ("default", "cli-nobody-yet"));
    let grant = |name: &str, verbs: &[&str]| {
        hub.grant(name, Some(SECRET_NAMESPACE), &json!([rule("", &["secrets"], verbs)]), nobody)
    };
    grant("cli-reader", &["get", "list"])?;
    wait::until("the right to read", LIMIT, || {
        joining.fails(&program, &line, 3, &["cannot identify this hub", "the namespace kube-system"])
    })?;
    let mut to_see = rule("", &["namespaces"], &["get"]);
    to_see["resourceNames"] = json!(["kube-system"]);
    hub.grant("cli-identifies", None, &json!([to_see]), nobody)?;
    wait::until("the right to know the hub", LIMIT, || {
        joining.fails(&program, &line, 3, &["you may not", &remedy("create")])
    })?;
    // With the rights that were missing.
    grant("cli-writer", &["create"])?;
    let proxies = rule("cluster.core.oam.dev", &["clustergateways/proxy"], &["*"]);
    hub.grant("cli-proxies", None, &json!([proxies]), nobody)?;
    wait::until("the right to write", LIMIT, || ended(&program, &line, 0))?;
    joining.detached()
}

/// A kubeconfig of the member with a token that was valid, and soon is not.
fn void(testbed: &Testbed, cluster: &str) -> Result<PathBuf> {
    let (member, account) = (&testbed.member.server, format!("cli-{cluster}-void"));
    let token = member.service_account_token("default", &account)?;
    member.delete(&format!("serviceaccount {account} -n default"))?;
    member.kubeconfig(&account, Credential::Token(token))
}

fn unusable(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "kotka");
    joining.fails_unasked(|member| Ok(joining.line(member)))?;
    joining.works()
}

fn interrupted(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "hanko");
    let admin = joining.admin();
    let nobody = format!("https://127.0.0.1:{}", ports::free()?);
    // After the first object that it created, and while it waits for the member to answer.
    for last in ["on the member: created", "on the hub: registered"] {
        let line = format!("{} --wait 1m --endpoint {nobody}", joining.line_anyhow(&admin));
        let running = started(&joining.program, &line);
        running.text_with(last);
        interrupt(running)?;
        ensure!(joining.is_there()?, "something was made");
        joining.works()?;
    }
    Ok(())
}

fn half_done(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "porvoo");
    let admin = joining.admin();
    // A chart with a kind that the member does not have: everything before that is created, and
    // nothing is registered.
    let chart = testbed.launcher().directory.join("cli-broken-chart");
    std::fs::create_dir_all(chart.join("templates"))?;
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: broken\nversion: 0.0.0\n")?;
    std::fs::write(chart.join("templates/x.yaml"), "apiVersion: no.such/v1\nkind: Nothing\nmetadata: {name: x}\n")?;
    let (authority, helm) = (testbed.tunnel.serving_authority_file(), provide(Tool::Helm)?);
    let line = |chart: &Path, helm: &Path| {
        let servers = format!("--server 127.0.0.1:1 --server-ca {}", authority.display());
        let (line, chart, helm) = (joining.line_anyhow(&admin), chart.display(), helm.display());
        format!("{line} --tunnel {servers} --agent-chart {chart} --helm {helm}")
    };
    let program = &joining.program;
    let good = Chart::Agent.directory();
    joining.fails(program, &line(&good, Path::new("no-such-helm")), 2, &["no-such-helm", "install helm"])?;
    joining.fails(program, &line(Path::new("/no/chart"), &helm), 1, &["helm: ", "/no/chart", "--agent-chart"])?;
    joining.fails(program, &line(&good, &helm).replace(&*authority.to_string_lossy(), "/no.crt"), 2, &["/no.crt"])?;
    // An identity that the gateway's chart created.
    testbed.hub.server.create(&[account(SECRET_NAMESPACE, "tunnel-agent-porvoo")])?;
    let foreign = ended(program, &line(&good, &helm), 2)?.stderr;
    ensure!(foreign.contains("hub: the ServiceAccount") && foreign.contains("tunnel.agents"), "{foreign}");
    testbed.hub.server.delete(&format!("serviceaccount tunnel-agent-porvoo -n {SECRET_NAMESPACE}"))?;
    ensure!(!joining.is_there()?, "something was made beside another's");
    let told = ended(program, &line(&chart, &helm), 1)?.stderr;
    ensure!(told.contains("no.such/v1") && told.contains("remedy: "), "{told}");
    ensure!(joining.is_there()?, "the accounts are made");
    // It can be detached, although nothing is registered under that name.
    let unsaid = ended(program, "detach porvoo --yes", 0);
    ensure!(unsaid.is_ok_and(|told| told.stderr.contains("the agent's ServiceAccount")), "the hub's part is found");
    joining.detached()?;
    // Or it can be completed.
    ended(program, &line(&chart, &helm), 1)?;
    joining.works()
}
