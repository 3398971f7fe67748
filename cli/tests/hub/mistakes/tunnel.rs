//! The same for a member that is joined through an agent.

use std::path::Path;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, Testbed};
use hub_tests::tools::{Tool, provide};
use hub_tests::tunnel::{AgentCredential, AgentOptions};
use hub_tests::wait;

use super::{Joining, LIMIT};
use crate::fixture::{clusters_as, ended, hub_user, interrupt, is_void, started};

/// The command line that joins `joining` through an agent, with the member's kubeconfig at
/// `member`.
fn line(joining: &Joining<'_>, member: &Path) -> Result<String> {
    let (testbed, helm) = (joining.testbed, provide(Tool::Helm)?);
    let (server, authority) = (testbed.tunnelled()?.agent_address, testbed.tunnel.serving_authority_file());
    let servers = format!("--server {server} --server-ca {}", authority.display());
    Ok(format!("{} --tunnel {servers} --helm {}", joining.line_anyhow(member), helm.display()))
}

pub fn unusable(testbed: &Testbed) -> Result<()> {
    let joining = Joining::of(testbed, "turku");
    let own = line(&joining, &joining.admin())?;
    joining.fails_unasked(|member| line(&joining, member))?;
    // A user that may use clusters, but not register any.
    let token = testbed.hub.create_user("cli-turku-nobody", &[], ALL_VERBS)?;
    let nobody = clusters_as(testbed, &hub_user(testbed, "turku-nobody", &token)?);
    let told = format!("{own} --clusters-namespace {SECRET_NAMESPACE}");
    joining.fails(&nobody, &told, 3, &["forbidden", "ask the hub's administrator"])?;
    // With a name that another member has.
    let hub = testbed.hub.server.kubectl().kubeconfig;
    let taken = line(&joining, &hub)?.replace("join turku", &format!("join {CLUSTER}"));
    joining.fails(&joining.program, &taken, 2, &["is taken", "another name", "detach"])
}

/// A member without a kubelet: the test starts the agent, with what its pod would have.
struct Tunnelled<'a>(Joining<'a>);

// === impl Tunnelled ===

impl Tunnelled<'_> {
    /// The token in the agent's Secret.
    fn token(&self) -> Result<String> {
        self.0.testbed.member.server.secret(&format!("tunnel-agent -n cli-{}", self.0.cluster), "token")
    }

    /// Does what a kubelet does when the Secret changes.
    fn mount(&self) -> Result<AgentCredential> {
        AgentCredential::token(self.0.testbed.launcher(), &format!("cli-{}", self.0.cluster), &self.token()?)
    }

    fn answers(&self) -> Result<()> {
        ended(&self.0.program, &format!("get pods {}", self.0.cluster), 0).map(drop)
    }
}

/// Only the person applies what is printed, and it is all that the agent needs.
pub fn printed(testbed: &Testbed) -> Result<()> {
    let tunnelled = Tunnelled(Joining::of(testbed, "pori"));
    let (joining, server) = (&tunnelled.0, testbed.tunnelled()?.agent_address);
    let (admin, authority) = (joining.admin(), testbed.tunnel.serving_authority_file());
    let line = format!("{} --print", line(joining, &admin)?);
    let unlinked = ended(&joining.program, &format!("{line} --wait 1s"), 1)?;
    ensure!(unlinked.stderr.contains("Apply these on the member"), "{unlinked:?}");
    ensure!(unlinked.stderr.contains("pori is registered, but"), "{unlinked:?}");
    let (api, person) = (&testbed.member.server, testbed.member.server.kubectl());
    let made = api.names("deployments,poddisruptionbudgets,serviceaccounts -n cli-pori")?;
    ensure!(!made.iter().any(|name| name.contains("tunnel-agent")), "something was applied: {made:?}");
    api.present("serviceaccount pori -n cli-pori")?;
    person.apply(&unlinked.stdout)?;
    api.present("deployment,serviceaccount tunnel-agent -n cli-pori")?;
    ensure!(api.names("poddisruptionbudgets -n cli-pori")?.len() == 1, "no PodDisruptionBudget");
    // Starts the agent as its pod would: with the printed arguments and the Secret that they mount.
    let args = api.text("deployment tunnel-agent -n cli-pori", "/spec/template/spec/containers/0/args")?;
    ensure!(args.contains("--cluster=pori") && args.contains(&format!("--server={server}")), "{args}");
    let agent = AgentOptions::new("pori", server, authority, testbed.member.server.address(), tunnelled.mount()?);
    let agent = agent.start()?;
    agent.wait_ready(LIMIT).context("the agent")?;
    wait::until("it to be linked", LIMIT, || tunnelled.answers())?;
    // The same command again finds the agent linked, and what it prints replaces no pod.
    let generation = || api.text("deployment tunnel-agent -n cli-pori", "/metadata/generation");
    let before = generation()?;
    let again = ended(&joining.program, &line, 0)?;
    ensure!(again.stderr.contains("cluster pori joined"), "{again:?}");
    person.apply(&again.stdout)?;
    ensure!(generation()? == before, "the Deployment is another one");
    drop(agent);
    joining.detached()
}

pub fn interrupted(testbed: &Testbed) -> Result<()> {
    let tunnelled = Tunnelled(Joining::of(testbed, "rauma"));
    let (joining, server) = (&tunnelled.0, testbed.tunnelled()?.agent_address);
    let (admin, authority) = (joining.admin(), testbed.tunnel.serving_authority_file());
    let line = format!("{} --wait 1m", line(joining, &admin)?);
    // After the first object that it created, and while it waits for the agent.
    for last in ["on the hub: created", "on the hub: registered"] {
        let running = started(&joining.program, &line);
        running.text_with(last);
        interrupt(running)?;
        ensure!(joining.is_there()?, "something was made");
    }
    let agent = AgentOptions::new("rauma", server, authority, testbed.member.server.address(), tunnelled.mount()?);
    let agent = agent.start()?;
    agent.wait_ready(LIMIT).context("the agent")?;
    ended(&joining.program, &line, 0)?;
    tunnelled.answers()?;
    // The agents have a new token then, and the old one is still valid.
    let (old, rotate) = (tunnelled.token()?, format!("rotate rauma --member-kubeconfig {}", admin.display()));
    let running = started(&joining.program, &rotate);
    wait::until_true("the new token", LIMIT, || Ok(tunnelled.token()? != old))?;
    interrupt(running)?;
    tunnelled.answers()?;
    thread::scope(|scope| -> Result<()> {
        let again = scope.spawn(|| ended(&joining.program, &rotate, 0));
        wait::until_true("the second try", LIMIT, || tunnelled.mount().map(|_| again.is_finished()))?;
        again.join().expect("no panic").map(drop)
    })?;
    wait::until_true("the old token to be void", LIMIT, || is_void(&testbed.hub.server, &old))?;
    tunnelled.answers()?;
    drop(agent);
    joining.detached()
}
