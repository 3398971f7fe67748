//! A credential is replaced before it ends, when its Secret says something else, and not for
//! anything less.

use system_tests::prelude::*;

use super::{PATH, Plugin, issue, member, seen};

/// How soon a change of a cluster takes effect, on a busy machine too.
const EFFECTIVE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn before_its_end_a_token_is_replaced_and_no_request_fails() {
    let member = member(Http::H2.member_options()).await;
    let end = "$(date -u -d @$(($(date +%s) + 3)) +%Y-%m-%dT%H:%M:%SZ)";
    let issue = issue(",\"expirationTimestamp\":\"%s\"");
    let plugin = Plugin::new(&format!("END={end}\n{issue} $END"));
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    testbed
        .until(WAIT, &proxied(CLUSTER, PATH), |answer| {
            assert_eq!(answer.status, 200, "{}", answer.text());
            seen(&member).last().is_some_and(|credential| credential == "Bearer token-3")
        })
        .await;
    let mut credentials = seen(&member);
    credentials.dedup();
    assert_eq!(credentials, ["Bearer token-1", "Bearer token-2", "Bearer token-3"]);
}

#[tokio::test]
async fn a_changed_secret_is_another_credential_and_an_unchanged_one_is_not() {
    let member = member(Http::H2.member_options()).await;
    let (first, second) = (Plugin::tokens(""), Plugin::new(&issue("").replace("token-", "other-")));
    let testbed = Testbed::builder().cluster(CLUSTER, first.secret(CLUSTER, &member)).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);

    // A label is no concern of the program's.
    testbed
        .register(CLUSTER, first.secret(CLUSTER, &member).label("changed", "yes").data("tls-server-name", "localhost"));
    testbed.until(EFFECTIVE, &target, |_| member.connections_accepted() == 2).await;
    assert_eq!(first.runs(), 1);
    assert!(seen(&member).iter().all(|credential| credential == "Bearer token-1"));

    testbed.register(CLUSTER, second.secret(CLUSTER, &member));
    testbed.until(EFFECTIVE, &target, |_| seen(&member).last().is_some_and(|last| last == "Bearer other-1")).await;
    assert_eq!((first.runs(), second.runs()), (1, 1));
}

#[tokio::test]
async fn with_its_cluster_a_credential_is_forgotten() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens("");
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    testbed.unregister(CLUSTER);
    testbed.until(EFFECTIVE, &target, |answer| answer.status == 404).await;
    testbed.register(CLUSTER, plugin.secret(CLUSTER, &member));
    testbed.until(EFFECTIVE, &target, |answer| answer.status == 200).await;
    assert_eq!(seen(&member).last().map(String::as_str), Some("Bearer token-2"));
}

#[tokio::test]
async fn a_program_ends_with_its_cluster() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new("sleep 600");
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, PATH);
    // The client leaves: the program goes on for the next client.
    let leaving = async {
        tokio::select! {
            answer = connection.get(&target) => panic!("{}", answer.text()),
            () = plugin.running(1) => {}
        }
    };
    within(WAIT, "the program to run", leaving).await;
    drop(connection);
    testbed.unregister(CLUSTER);
    plugin.ended().await;
}

#[tokio::test]
async fn a_program_ends_with_the_gateway() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new("sleep 600");
    let builder = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).arg("--drain-timeout=500ms");
    let testbed = builder.start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, PATH);
    let asking = tokio::spawn(async move { connection.try_call("GET", &target, &[], b"").await.is_ok() });
    plugin.running(1).await;
    testbed.stop().await;
    plugin.ended().await;
    asking.await.expect("the client does not panic");
}
