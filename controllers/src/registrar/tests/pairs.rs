//! Certificates and private keys that do not belong together.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::pki::{Issued, self_signed_leaf};
use serde_json::{Value, json};

use super::*;
use crate::reports::Report;

fn user(certificate: &Issued, key: &Issued) -> Value {
    let [certificate, key] = [&certificate.certificate_pem, &key.key_pem].map(|pem| STANDARD.encode(pem));
    json!({"client-certificate-data": certificate, "client-key-data": key})
}

/// Whether the only object is refused for its key.
fn is_refused(leader: &Leader) -> bool {
    let is_so = |report: &Report| report.state == Stage::Refused && report.reason.contains("key does not fit");
    matches!(leader.reports.list().as_slice(), [report] if is_so(report))
}

#[tokio::test(start_paused = true)]
async fn a_key_of_another_certificate_is_refused_when_it_is_new_and_when_it_replaces_one() {
    let [one, other] = ["one", "other"].map(|name| self_signed_leaf(name, &[]));
    let hub = Hub::default();
    let leader = Leader::of(&hub);
    hub.put_user("c0", &user(&one, &other));
    until("a refusal", || is_refused(&leader)).await;
    hub.annotate(FLEET, "c0");
    sleep(PATIENCE).await;
    assert!(is_refused(&leader), "read once more");
    assert_eq!((hub.cluster("c0"), writes(&hub)), (None, 0));

    hub.put_user("c0", &user(&one, &one));
    until("the cluster", || leader.registered() == 1).await;
    let version = hub.cluster("c0");
    drop(leader);
    let leader = Leader::of(&hub);
    until("the same cluster", || leader.registered() == 1).await;
    hub.put_user("c0", &user(&other, &one));
    until("another refusal", || is_refused(&leader)).await;
    assert_eq!((hub.cluster("c0"), writes(&hub)), (version, 1), "the registration stays as it was");
}

/// It was checked before it was written: another check would take a fifth of a restart's CPU time.
#[tokio::test(start_paused = true)]
async fn what_is_in_the_secret_of_a_cluster_is_not_checked_again() {
    let [one, other] = ["one", "other"].map(|name| self_signed_leaf(name, &[]));
    let hub = Hub::default();
    let leader = Leader::of(&hub);
    hub.put_user("c0", &user(&one, &one));
    until("the cluster", || leader.registered() == 1).await;
    drop(leader);
    // As if this version could not use a key that an earlier one wrote.
    hub.put_user("c0", &user(&one, &other));
    hub.write_hash("c0");
    let leader = Leader::of(&hub);
    until("the cluster as it is", || leader.registered() == 1).await;
    assert_eq!(writes(&hub), 1);
}
