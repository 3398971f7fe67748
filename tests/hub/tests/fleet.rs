//! The crate `fleet`, which thin clients of many clusters use: through the hub's aggregator and the
//! gateway, with the rights of an ordinary user of the hub.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::cluster_name::ClusterName;
use api::side::Side;
use fleet::{EndpointType, Failure, Fleet, Kind, Limits, Outcome};
use futures_util::StreamExt as _;
use hub_tests::gate::Gate;
use hub_tests::hub::MemberSecret;
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::testbed::{ALL_VERBS, CLUSTER, CLUSTER_X509, Testbed};
use hub_tests::{ports, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kit::member::BlackHole;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, test};

const NAME: &str = "fleet";
/// A cluster at whose address nothing listens.
const DEAD: &str = "fleet-dead";
/// A cluster whose address neither accepts nor refuses connections.
const SILENT: &str = "fleet-silent";
/// Time for what must be prompt, and for the gateway to know new clusters.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "fleet::clusters are listed, and one operation reaches all that answer", many),
        test(fixture, "fleet::clients of all clusters share one connection, and a watch sees what they write", shared),
    ]
}

/// The clusters for a user who may list and use them, with `gate` in front of the hub.
struct FleetUser {
    gate: Gate,
    kubeconfig: PathBuf,
}

// === impl FleetUser ===

impl FleetUser {
    fn prepare(testbed: &Testbed, user: &str) -> Result<Self> {
        let name = &format!("{NAME}-{user}");
        let token = testbed.hub.create_user(name, &[], ALL_VERBS)?;
        let lister = &format!("{name}-lister");
        let rule = json!({"apiGroups": ["cluster.core.oam.dev"], "resources": ["clustergateways"], "verbs": ["list"]});
        let version = "rbac.authorization.k8s.io/v1";
        let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": lister}, "rules": [rule]});
        let binding = json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": lister},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": lister},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        });
        testbed.hub.apply(&[role, binding])?;
        let gate = Gate::start(testbed.hub.server.address())?;
        let kubeconfig = Kubeconfig {
            server: format!("https://127.0.0.1:{}", gate.port()),
            authority: testbed.hub.server.authority_file().to_path_buf(),
            credential: Credential::Token(token),
        };
        let kubeconfig = kubeconfig.write(testbed.directory(NAME)?.join(format!("{user}.kubeconfig")))?;
        Ok(Self { gate, kubeconfig })
    }

    /// Runs `run` with a fleet, on a separate runtime.
    fn run<R: Future<Output = Result<()>>>(&self, run: impl FnOnce(Fleet) -> R) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { run(Fleet::connect(Some(&self.kubeconfig), NAME).await?).await })
    }
}

fn name(text: &str) -> Result<ClusterName> {
    Ok(ClusterName::parse(text)?)
}

fn many(testbed: &Testbed) -> Result<()> {
    let user = FleetUser::prepare(testbed, "many")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let black_hole = runtime.block_on(BlackHole::start());
    let secret = || MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let (nobody, silent) =
        (format!("https://127.0.0.1:{}", ports::free()?), format!("https://{}", black_hole.address()));
    testbed.hub.register_member(DEAD, &secret().at(&nobody))?;
    testbed.hub.register_member(SILENT, &secret().at(&silent))?;
    wait::until("the clusters", LIMIT, || user.run(listed))?;
    user.run(async |fleet| {
        let start = tokio::time::Instant::now();
        let within = Duration::from_secs(3);
        let clusters = [SILENT, CLUSTER, DEAD, CLUSTER_X509].map(name).into_iter().collect::<Result<Vec<_>>>()?;
        let limits = Limits { at_once: 2, within };
        let all = fleet.each(clusters, limits, |_, client| async move {
            Api::<Namespace>::all(client).list(&ListParams::default()).await.map(|list| list.items.len())
        });
        let mut ended = Vec::new();
        let outcomes = all
            .in_order(|_, event| {
                if let fleet::Event::Finished(outcome) = event {
                    ended.push(outcome.cluster.to_string());
                }
            })
            .await;
        ensure!(start.elapsed() < 2 * within, "the silent one held up others: {:?}", start.elapsed());
        ensure!(ended == [CLUSTER, DEAD, CLUSTER_X509, SILENT], "{ended:?}");
        told(&outcomes)
    })?;
    testbed.hub.forget_member(DEAD)?;
    testbed.hub.forget_member(SILENT)
}

/// Both members and both clusters that do not answer are listed.
async fn listed(fleet: Fleet) -> Result<()> {
    let clusters = fleet.clusters("").await?;
    for expected in [CLUSTER, CLUSTER_X509, DEAD, SILENT] {
        let cluster = clusters.iter().find(|cluster| cluster.name.as_str() == expected).context(expected)?;
        ensure!(cluster.endpoint == Some(EndpointType::Const) && cluster.health.is_some(), "{cluster:?}");
    }
    let selected = fleet.clusters("cluster.core.oam.dev/cluster-credential-type=X509Certificate").await?;
    let selected: Vec<_> = selected.iter().map(|cluster| cluster.name.as_str()).collect();
    ensure!(selected.contains(&CLUSTER_X509) && !selected.contains(&CLUSTER), "{selected:?}");
    Ok(())
}

fn told(outcomes: &[Outcome<usize>]) -> Result<()> {
    let [silent, first, dead, second] = outcomes else { bail!("{outcomes:?}") };
    for member in [first, second] {
        ensure!(member.result.as_ref().is_ok_and(|count| *count > 0), "{member:?}");
    }
    let failure = dead.result.as_ref().err().context("a member where nobody listens")?;
    ensure!((failure.side, failure.kind) == (Some(Side::Member), Kind::Answered(503)), "{failure:?}");
    ensure!(failure.cause.contains("dial tcp") && failure.cluster == Some(name(DEAD)?), "{failure:?}");
    ensure!(!failure.is_retryable(), "nothing says that it is there in a moment: {failure:?}");
    let failure = silent.result.as_ref().err().context("a member that takes no connection")?;
    ensure!(failure.kind == Kind::Late, "{failure:?}");
    Ok(())
}

fn shared(testbed: &Testbed) -> Result<()> {
    let user = FleetUser::prepare(testbed, "shared")?;
    testbed.member.server.create_namespace(NAME)?;
    user.run(async |fleet| {
        let maps =
            |cluster: &str| -> Result<Api<ConfigMap>> { Ok(Api::namespaced(fleet.client(&name(cluster)?), NAME)) };
        fleet.clusters("").await?;
        for cluster in [CLUSTER, CLUSTER_X509, CLUSTER, CLUSTER_X509] {
            maps(cluster)?.list(&ListParams::default()).await?;
        }
        let absent = maps("fleet-absent")?.list(&ListParams::default()).await;
        let failure = Failure::from(absent.err().context("a cluster that nobody registered")?);
        ensure!((failure.side, failure.kind) == (Some(Side::Caller), Kind::Answered(404)), "{failure:?}");
        let accepted = user.gate.accepted();
        ensure!(accepted == 1, "{accepted} connections for one request after the other");

        let watch = WatchParams::default().fields("metadata.name=seen").timeout(60).disable_bookmarks();
        let mut events = Box::pin(maps(CLUSTER)?.watch(&watch, "0").await?);
        let metadata = ObjectMeta { name: Some("seen".to_owned()), ..ObjectMeta::default() };
        maps(CLUSTER_X509)?.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        let event = tokio::time::timeout(LIMIT, events.next()).await?.context("the watch ended")??;
        ensure!(matches!(&event, WatchEvent::Added(map) if map.name_any() == "seen"), "{event:?}");
        let accepted = user.gate.accepted();
        ensure!(accepted == 2, "{accepted} connections: one that the watch holds, one for the rest");
        Ok(())
    })
}
