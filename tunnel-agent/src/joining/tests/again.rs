//! The effects of the bootstrap kubeconfig on a cluster that has joined, and their limits.

use super::*;

/// `bootstrap` of a stub, changed.
fn change(stub: &Stub, change: impl FnOnce(&mut serde_json::Value)) {
    let path = stub.path("bootstrap");
    let mut document = serde_json::from_str(&contents(&path)).unwrap();
    change(&mut document);
    let new = stub.path("bootstrap.new");
    std::fs::write(&new, document.to_string()).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// A bootstrap token that has expired, which happens before any hub is restored.
#[tokio::test]
async fn a_bootstrap_that_is_refused_keeps_no_old_certificate_from_being_tried() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    stub.fault(|_| Some(Reply::status(401, "Unauthorized")));
    let agent = stub.run(Member::Unknown, None);
    let joins = || agent.metric("tunnel_agent_joins_again_total{reason=\"unauthorized\"}");
    eventually(SOON, || joins() == 1).await;
    let before = stub.lease_renewals();
    stub.fault(|request| is_bootstraps(request).then(|| Reply::status(401, "Unauthorized")));
    eventually(SOON, || stub.lease_renewals() > before && agent.metrics.accepted.get() == 1).await;
    assert!(stub.asked().is_empty());
}

#[tokio::test]
async fn a_bootstrap_kubeconfig_that_cannot_be_used_names_no_other_hub() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    let agent = stub.run(Member::Unknown, None);
    change(&stub, |it| {
        it["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
        it["users"][0]["user"] = json!({"tokenFile": "/etc/passwd"});
    });
    // Longer than the interval of its reads; the Lease is renewed each second.
    eventually(SOON, || stub.lease_renewals() >= 9).await;
    assert_eq!(agent.metric("tunnel_agent_joins_again_total{reason=\"other_hub\"}"), 0);
    change(&stub, |it| it["users"][0]["user"] = json!({"token": "t"}));
    eventually(SOON, || agent.metric("tunnel_agent_joins_again_total{reason=\"other_hub\"}") == 1).await;
}

#[tokio::test]
async fn another_way_to_the_same_hub_is_gone_at_once() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || agent.metrics.accepted.get() == 1).await;
    change(&stub, |it| it["clusters"][0]["cluster"]["proxy-url"] = "http://127.0.0.1:1".into());
    eventually(SOON, || contents(&stub.path("state/kubeconfig")).contains("http://127.0.0.1:1")).await;
    eventually(SOON, || agent.metrics.accepted.get() == 0).await;
    stub.kubeconfig("bootstrap");
    eventually(SOON, || agent.metrics.accepted.get() == 1).await;
    assert!(!contents(&stub.path("state/kubeconfig")).contains("proxy-url"));
    assert_eq!(agent.metric("tunnel_agent_joins_again_total{reason=\"other_hub\"}"), 0);
    assert!(stub.asked().is_empty(), "the certificate stays");
}

/// Restored from a backup of before the cluster joined.
#[tokio::test]
async fn a_hub_that_has_no_such_cluster_any_more_is_told_of_it_again() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    let announced = Arc::new(parking_lot::Mutex::new(0));
    let seen = Arc::clone(&announced);
    stub.fault(move |request| {
        let mut seen = seen.lock();
        if request.method == Method::POST && request.path() == cluster::CLUSTERS {
            assert!(is_bootstraps(request));
            *seen += 1;
            return Some(Reply::json(201, &json!({})));
        }
        (*seen == 0 && request.path() == cluster::path(CLUSTER)).then(Reply::not_found)
    });
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || agent.metrics.accepted.get() == 1).await;
    assert_eq!(*announced.lock(), 1);
    assert!(stub.asked().is_empty(), "the certificate stays");
}
