//! Tests of a fleet's profiles on a hub in memory, with a paused clock.

mod hub;

use std::sync::Arc;
use std::time::Duration;

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use prometheus_client::registry::Registry;
use register::cluster_profile::MANAGER;
use register::profile::GatewayAddress;
use tokio::time::timeout;

use self::hub::Hub;
use super::*;
use crate::args::Config;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::term::Term;

const ROUNDS: u32 = 12;
const MINUTE: Duration = Duration::from_mins(1);

async fn publish(hub: &Hub, time: Duration) {
    publish_while(hub, time, Duration::MAX).await;
}

fn config(more: &[&str]) -> Config {
    let arguments = ["x", "--enable=clusterprofile", "--clusterprofile-namespaces=fleet"];
    Config::new(&crate::args::parse_from(arguments.iter().chain(more)).unwrap()).unwrap()
}

fn context<'a>(config: &'a Config, hub: &Hub, term: Duration) -> Context<'a> {
    let metrics = Metrics::register(&mut Registry::default(), Arc::default());
    Context {
        config,
        hub: hub.client(),
        members: fleet::Fleet::new(hub.client()),
        events: Events::start(hub.client(), metrics.events_left_out.clone(), Term::endless()),
        metrics,
        term: Term::begun(Arc::new(move || term)),
        readiness: telemetry::readiness::Readiness::default(),
        explained: crate::explained::Explained::default(),
        answered: crate::wakes::Wakes::default(),
        withdrawn: crate::wakes::Wakes::default(),
    }
}

/// Publishes for `time`, as a replica whose term always lasts for another `term`.
async fn publish_while(hub: &Hub, time: Duration, term: Duration) {
    let config = config(&[]);
    let context = context(&config, hub, term);
    let gvk = GroupVersionKind::gvk(PROFILE.group, PROFILE.versions[0], PROFILE.name);
    let resource = ApiResource::from_gvk_with_plural(&gvk, PROFILE.plural);
    let gateway = GatewayAddress { url: "https://gateway:9443".to_owned(), ca: None };
    let publisher = Arc::new(Publisher::new(&context, gateway, resource));
    let _ = timeout(time, work(&publisher)).await;
}

#[tokio::test(start_paused = true)]
async fn idle_clusters_are_probed_and_not_written() {
    const CLUSTERS: usize = 100;
    let hub = Hub::new(CLUSTERS);
    publish(&hub, MINUTE / 2).await;
    assert_eq!(hub.profiles(), CLUSTERS);
    // One write creates it, and two set its status: before the first probe, and after it.
    assert_eq!(hub.writes(), 3 * CLUSTERS);
    let (written, probed) = (hub.writes(), hub.probes());
    publish(&hub, ROUNDS * MINUTE).await; // as after a restart
    assert!(hub.probes() - probed >= 10 * CLUSTERS, "{} probes", hub.probes() - probed);
    assert_eq!(hub.writes(), written, "what is said already is written");
}

#[tokio::test(start_paused = true)]
async fn members_that_hang_hold_up_nobody() {
    const WELL: usize = 20;
    let hub = Hub::new(10 * WELL);
    hub.hang(|name| !name.ends_with('7'));
    publish(&hub, ROUNDS * MINUTE).await;
    let well: Vec<_> = hub.conditions().into_iter().filter(|(_, status)| status == "True").collect();
    assert!(well.len() == WELL && well.iter().all(|(name, _)| name.ends_with('7')), "{well:?}");
    // After a restart all clusters come up at once, and no hanging one is given up before 10 s.
    let probed = hub.probes();
    publish(&hub, Duration::from_secs(9)).await;
    assert_eq!(hub.probes() - probed, WELL, "members that answer wait for those that do not");
}

#[tokio::test(start_paused = true)]
async fn anothers_profile_is_left_alone_and_one_without_a_cluster_is_removed() {
    let hub = Hub::new(2);
    hub.put("c0", "open-cluster-management");
    hub.put("gone", MANAGER);
    hub.put("foreign", "open-cluster-management");
    publish(&hub, MINUTE).await;
    assert_eq!(hub.names(), ["c0", "c1", "foreign"]);
    assert_eq!(hub.manager("c0"), "open-cluster-management");
    assert!(hub.events().iter().any(|event| event.contains("ProfileNameTaken") && event.contains("c0")));
}

#[tokio::test(start_paused = true)]
async fn the_kind_is_waited_for_and_without_another_way_the_hub_is_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hub.yaml");
    let text = "{clusters: [{name: h, cluster: {server: https://hub:6443}}], users: [{name: u, user: {token: t}}],
        contexts: [{name: c, context: {cluster: h, user: u}}], current-context: c}";
    std::fs::write(&file, text).unwrap();
    let (hub, config) = (Hub::new(1), config(&[&format!("--kubeconfig={}", file.display())]));
    let context = context(&config, &hub, Duration::MAX);
    let _ = timeout(MINUTE, run(context.clone())).await;
    assert_eq!(hub.profiles(), 0);
    hub.serve_kind();
    let _ = timeout(MINUTE, run(context)).await;
    let server = "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c0/proxy";
    assert_eq!(hub.profile("c0")["status"]["accessProviders"][0]["cluster"]["server"], server);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_writes_nothing() {
    let hub = Hub::new(1);
    hub.put("gone", MANAGER);
    publish_while(&hub, MINUTE, Duration::ZERO).await;
    assert_eq!((hub.writes(), hub.names()), (0, vec!["gone".to_owned()]));
}
