//! The leader election (`hub::election`) on a real API server, with exactly the rights that it
//! documents.

use std::path::{Path, PathBuf};

use hub::election::{Election, Identity, Timing};
use hub_tests::prelude::*;
use libtest_mimic::Trial;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::fixture::{Fixture, test};

const NAME: &str = "elected";
const LEASE: Duration = Duration::from_secs(15);
/// The longest time between two attempts of a standby, or between two renewals.
const PAUSE: Duration = Duration::from_millis(2400);
/// Time for requests to a hub that is busy with other tests.
const SLACK: Duration = Duration::from_secs(3);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(
        fixture,
        "election::a leader is replaced when it vanishes, when it stops, and when somebody takes its Lease",
        replaced,
    )]
}

/// A contender, as a program would be one.
struct Contender {
    name: &'static str,
    leads: watch::Receiver<bool>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Option<()>>,
}

// === impl Contender ===

impl Contender {
    async fn start(kubeconfig: &Path, name: &'static str) -> Result<Self> {
        let client = hub::client::client(Some(kubeconfig), NAME).await?;
        let identity = Identity::named(name).context("a name")?;
        let election = Election::new(client, "default", NAME, identity, Timing::default());
        let leads = election.leads();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            election.run(async move { drop(stopped.await) }, |_| std::future::pending::<()>()).await
        });
        Ok(Self { name, leads, stop, task })
    }

    fn is_leading(&self) -> bool {
        *self.leads.borrow()
    }

    /// Waits until it leads, or does not; returns the time.
    async fn becomes(&mut self, leading: bool, limit: Duration) -> Result<Duration> {
        let start = Instant::now();
        let change = timeout(limit, self.leads.wait_for(|now| *now == leading)).await;
        change.with_context(|| format!("{}: {leading} not within {limit:?}", self.name))??;
        Ok(start.elapsed())
    }
}

/// The kubeconfig of a user with an election's rights on Leases.
fn kubeconfig(testbed: &Testbed) -> Result<PathBuf> {
    let token = testbed.hub.server.service_account_token("default", NAME)?;
    let version = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": NAME, "namespace": "default"});
    let leases = json!(["leases"]);
    let groups = json!(["coordination.k8s.io"]);
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [
        {"apiGroups": groups, "resources": leases, "verbs": ["create"]},
        {"apiGroups": groups, "resources": leases, "resourceNames": [NAME], "verbs": ["get", "patch", "watch"]},
    ]});
    let binding = json!({
        "apiVersion": version,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "default"}],
    });
    testbed.hub.apply(&[role, binding])?;
    testbed.hub.server.kubeconfig(NAME, Credential::Token(token))
}

fn replaced(testbed: &Testbed) -> Result<()> {
    let kubeconfig = kubeconfig(testbed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut first = Contender::start(&kubeconfig, "first").await?;
        first.becomes(true, SLACK).await?;
        let mut others = Vec::new();
        for name in ["second", "third", "fourth"] {
            others.push(Contender::start(&kubeconfig, name).await?);
        }
        renewed(testbed)?;
        ensure!(first.is_leading() && !others.iter().any(Contender::is_leading), "more than one");

        first.task.abort(); // nothing is given up
        let took = one_leads(testbed, &mut others, LEASE + SLACK).await?;
        ensure!(took >= LEASE.saturating_sub(PAUSE), "another led after {took:?}");

        let leader = others.swap_remove(others.iter().position(Contender::is_leading).context("a leader")?);
        leader.stop.send(()).map_err(|()| anyhow!("{} does not run", leader.name))?;
        ensure!(leader.task.await?.is_none());
        one_leads(testbed, &mut others, PAUSE + SLACK).await?;

        let leader = others.iter().position(Contender::is_leading).context("a leader")?;
        steal(testbed)?;
        others[leader].becomes(false, PAUSE + SLACK).await?;
        let holder = lease(testbed, "/spec/holderIdentity")?;
        ensure!(holder == "thief", "{holder} took it back");
        let transitions = lease(testbed, "/spec/leaseTransitions")?;
        ensure!(transitions == "2", "{transitions}");
        Ok(())
    })
}

/// Waits until one leads and has renewed while the others stand by; returns the time until it led.
async fn one_leads(testbed: &Testbed, contenders: &mut [Contender], limit: Duration) -> Result<Duration> {
    let names: Vec<_> = contenders.iter().map(|contender| contender.name).collect();
    let waits = contenders.iter_mut().map(|contender| Box::pin(contender.becomes(true, limit)));
    let (first, ..) = futures_util::future::select_ok(waits).await.with_context(|| format!("none of {names:?}"))?;
    renewed(testbed)?;
    renewed(testbed)?;
    let leaders: Vec<_> = contenders.iter().filter(|one| one.is_leading()).map(|one| one.name).collect();
    ensure!(leaders.len() == 1, "{leaders:?} lead");
    Ok(first)
}

fn lease(testbed: &Testbed, pointer: &str) -> Result<String> {
    testbed.hub.server.text(&format!("lease {NAME} -n default"), pointer)
}

/// Waits until the Lease is renewed once more.
fn renewed(testbed: &Testbed) -> Result<()> {
    let time = || lease(testbed, "/spec/renewTime");
    let before = time()?;
    wait::until_true("a renewal", PAUSE + SLACK, || Ok(time()? != before))
}

fn steal(testbed: &Testbed) -> Result<()> {
    let thief = json!({"spec": {"holderIdentity": "thief"}});
    testbed.hub.server.patch(&format!("lease {NAME} -n default"), &thief).map(drop)
}
