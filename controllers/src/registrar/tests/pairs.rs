//! Certificates and private keys that do not belong together.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::pki::{Issued, self_signed_leaf};
use serde_json::{Value, json};

use super::*;

fn user(certificate: &Issued, key: &Issued) -> Value {
    let [certificate, key] = [&certificate.certificate_pem, &key.key_pem].map(|pem| STANDARD.encode(pem));
    json!({"client-certificate-data": certificate, "client-key-data": key})
}

/// Whether the only object is refused for its key.
fn is_refused(leader: &Leader) -> bool {
    let reports = leader.reports.list();
    reports.iter().any(|report| report.state == Stage::Refused && report.reason.contains("key does not fit"))
}

/// What is in a cluster's Secret is not checked again, everything else is.
#[tokio::test(start_paused = true)]
async fn a_key_of_another_certificate_is_refused_when_it_is_new_and_when_it_replaces_one() {
    let [one, other] = ["one", "other"].map(|name| self_signed_leaf(name, &[]));
    let hub = Hub::default();
    let leader = Leader::of(&hub);
    hub.put_user("c0", &user(&one, &other));
    until("a refusal", || is_refused(&leader)).await;
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
