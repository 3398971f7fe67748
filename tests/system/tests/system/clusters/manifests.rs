//! Clusters of a directory: an error in one is reported to its own callers, and harms no other.

use system_tests::prelude::*;

use super::{EFFECTIVE, PATH, is_ok, member, secret};

/// A cluster whose manifest is wrong.
const BROKEN: &str = "broken";

/// A manifest of [`BROKEN`] with one member of `data` replaced.
fn manifest(good: &Value, key: &str, value: &str) -> String {
    let mut manifest = good.clone();
    manifest["kind"] = json!("Secret");
    manifest["data"][key] = json!(value);
    manifest.to_string()
}

#[tokio::test]
async fn a_cluster_with_a_wrong_secret_says_what_is_wrong_until_it_is_corrected() {
    let member = member(MemberOptions::default()).await;
    let good = Value::from(cluster(BROKEN, &member));
    let testbed = Testbed::builder()
        .cluster(CLUSTER, cluster(CLUSTER, &member))
        .cluster(BROKEN, cluster(BROKEN, &member))
        .start()
        .await;
    // Empty, "no URL", "no PEM", empty, "not valid", no base64 at all.
    let wrong = [
        ("endpoint", ""),
        ("endpoint", "bm8gVVJM"),
        ("ca.crt", "bm8gUEVN"),
        ("token", ""),
        ("token", "bm90IHZhbGlk"),
        ("token", "%%%"),
    ];
    for (key, value) in wrong {
        testbed.write_manifest(BROKEN, &manifest(&good, key, value));
        let answer = testbed.until(EFFECTIVE, &proxied(BROKEN, PATH), |answer| answer.status != 200).await;
        assert_eq!(answer.status, 503, "{key}={value:?}: {}", answer.text());
        let message = answer.status_message(503, "ServiceUnavailable");
        assert!(message.contains(BROKEN) && message.contains(key), "{key}={value:?}: {message}");
        assert_eq!(answer.json()["details"]["name"], BROKEN);
        assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200, "the other cluster works");
        let seen = member.request_count();
        testbed.get(&proxied(BROKEN, PATH)).await.status_message(503, "ServiceUnavailable");
        assert_eq!(member.request_count(), seen, "nothing is sent with half a Secret");
        testbed.register(BROKEN, cluster(BROKEN, &member));
        testbed.until(EFFECTIVE, &proxied(BROKEN, PATH), is_ok).await;
    }
}

#[tokio::test]
async fn a_cluster_whose_manifest_breaks_is_not_taken_for_deleted() {
    // A client that reads "no such cluster" gives up what it has there.
    let member = member(MemberOptions::default()).await;
    let good = Value::from(cluster(BROKEN, &member));
    // Half an edit, a value that cannot be decoded, and a file that was truncated before it is
    // written again.
    let half = r#"{"kind": "Secret", "metadata": {"name""#.to_owned();
    for broken in [half, manifest(&good, "token", "%%%"), String::new()] {
        let testbed = Testbed::builder().cluster(BROKEN, cluster(BROKEN, &member)).start().await;
        let mut connection = testbed.connect(Http::H2).await;
        assert_eq!(connection.get(&proxied(BROKEN, PATH)).await.status, 200);
        testbed.write_manifest(BROKEN, &broken);
        // Written later, so the gateway has looked at both once this one is there.
        testbed.register(CLUSTER, cluster(CLUSTER, &member));
        testbed.until(EFFECTIVE, &proxied(CLUSTER, PATH), is_ok).await;
        let answer = connection.get(&proxied(BROKEN, PATH)).await;
        if answer.status != 200 {
            let message = answer.status_message(503, "ServiceUnavailable");
            assert!(message.contains(BROKEN), "{message}");
        }
    }
}

across_http!(a_cluster_works_from_its_creation_to_its_deletion);

async fn a_cluster_works_from_its_creation_to_its_deletion(http: Http) {
    let member = member(http.member_options()).await;
    let testbed = Testbed::builder().start().await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, PATH);

    let answer = connection.get(&target).await;
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
    assert_eq!(answer.json()["details"]["name"], CLUSTER);

    testbed.register(CLUSTER, secret(&member, "first"));
    testbed.until(EFFECTIVE, &target, is_ok).await;
    assert_eq!(connection.get(&target).await.status, 200);

    testbed.register(CLUSTER, secret(&member, "second"));
    testbed.until(EFFECTIVE, &target, |_| authorization(&member) == "Bearer second").await;

    testbed.unregister(CLUSTER);
    testbed.until(EFFECTIVE, &target, |answer| answer.status == 404).await;
    let seen = member.request_count();
    let answer = connection.get(&target).await;
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
    assert_eq!(member.request_count(), seen);
}

/// The credential of the latest request.
fn authorization(member: &FakeMember) -> String {
    member.requests().last().and_then(|request| request.header("authorization").map(str::to_owned)).unwrap_or_default()
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_at_the_start_is_no_absence() {
    let member = member(MemberOptions::default()).await;
    // Named only in the file, or nowhere: an unreadable one may be about any cluster.
    let testbed = Testbed::builder()
        .cluster(CLUSTER, cluster(CLUSTER, &member))
        .manifest(BROKEN, "kind: Secret\nmetadata: {name: broken")
        .launch()
        .await;
    testbed.until(EFFECTIVE, &proxied(CLUSTER, PATH), is_ok).await;
    let answer = testbed.get(&proxied(BROKEN, PATH)).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(!message.contains("no such cluster"), "{message}");

    testbed.register(BROKEN, cluster(BROKEN, &member));
    testbed.until(EFFECTIVE, &proxied(BROKEN, PATH), is_ok).await;
    testbed.unregister(BROKEN);
    let answer = testbed.until(EFFECTIVE, &proxied(BROKEN, PATH), |answer| answer.status == 404).await;
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
}
