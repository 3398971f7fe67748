//! Clusters that nothing follows any more.

use super::*;

/// An object in a namespace that the source does not read.
const ELSEWHERE: &str = "core/Secret/elsewhere/c0";

#[tokio::test(start_paused = true)]
async fn the_name_of_a_namespace_that_is_not_read_any_more_is_told() {
    let hub = Hub::default();
    hub.put_cluster("c0", ELSEWHERE);
    hub.put_source("c0", "first");
    let version = hub.cluster("c0");
    let leader = Leader::of(&hub);
    let told = || leader.reports.list().into_iter().find(|report| report.state == Stage::Taken);
    until("a refusal", || told().is_some()).await;
    let why = told().unwrap().reason;
    for part in [ELSEWHERE, "the source kubeconfig does not read", "--watch-namespaces", "delete Secret c0"] {
        assert!(why.contains(part), "{why}");
    }
    sleep(PATIENCE).await;
    assert_eq!((hub.cluster("c0"), writes(&hub)), (version, 0), "it was touched");
    hub.delete(CLUSTERS, "c0");
    until("the name", || leader.registered() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_elsewhere_is_none_that_remains() {
    let (hub, leader) = registered(1).await;
    drop(leader);
    hub.put_cluster("other", ELSEWHERE);
    hub.delete(FLEET, "c0");
    let _leader = Leader::of(&hub);
    sleep(Duration::from_mins(5)).await;
    assert!(hub.cluster("c0").is_some(), "the lists have none of the source's clusters");
    until("its end", || hub.cluster("c0").is_none()).await;
    assert!(hub.cluster("other").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_former_name_stays_and_is_told_until_its_secret_is_deleted() {
    let hub = Hub::default();
    for former in ["old", "older"] {
        hub.put_cluster(former, "core/Secret/fleet/c0");
    }
    hub.put_source("c0", "first");
    hub.put_source("old", "other");
    let leader = Leader::of(&hub);
    let report = |object: &str| leader.reports.list().into_iter().find(|report| report.object == object).unwrap();
    let c0 = || Vec::from_iter(report("core/Secret/fleet/c0").former_names);
    until("the name of now", || leader.registered() == 1).await;
    until("the other", || report("core/Secret/fleet/old").state == Stage::Taken).await;
    assert_eq!((c0(), leader.reports.formers()["kubeconfig"]), (vec!["old".to_owned(), "older".to_owned()], 2));
    let why = report("core/Secret/fleet/old").reason;
    assert!(why.contains("core/Secret/fleet/c0, which had this name before: delete Secret old"), "{why}");
    sleep(PATIENCE).await;
    assert_eq!(writes(&hub), 1, "the former ones were touched");
    hub.delete(CLUSTERS, "old");
    until("the free name", || leader.registered() == 2).await;
    assert_eq!(c0(), ["older"]);
    hub.delete(FLEET, "c0");
    until("the end of all names of an object", || hub.cluster("c0").is_none() && hub.cluster("older").is_none()).await;
    assert!(hub.cluster("old").is_some());
}
