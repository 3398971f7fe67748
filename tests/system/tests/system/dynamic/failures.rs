//! A program that fails, hangs or is not there: its cluster says why, and no other cluster notices.

use system_tests::prelude::*;

use super::{PATH, Plugin, assert_runs_now_and_then, member};

const PREFIX: &str = "cluster c1: failed to issue credential from external command: ";

fn reason(answer: &Answer) -> String {
    let message = answer.status_message(503, "ServiceUnavailable");
    assert_eq!(answer.header("retry-after"), None);
    assert!(!message.contains("no such cluster"), "{message}");
    message.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[tokio::test]
async fn a_failing_program_is_quoted_without_its_secrets_and_left_alone_for_a_while() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new("echo \"cannot log in\nas me:$PASSWORD\" >&2; echo \"$PASSWORD\"; exit 3")
        .with("env", json!([{"name": "PASSWORD", "value": "planted-canary"}]));
    let testbed = Testbed::builder()
        .cluster(CLUSTER, plugin.secret(CLUSTER, &member))
        .cluster("other", cluster("other", &member))
        .start()
        .await;
    let mut connection = testbed.connect(Http::H2).await;
    let started = Instant::now();
    for _ in 0..20 {
        let answer = connection.get(&proxied(CLUSTER, PATH)).await;
        assert_eq!(reason(&answer), "exec: executable sh failed with exit code 3: cannot log in\\nas me:***");
        assert_eq!(connection.get(&proxied("other", PATH)).await.status, 200);
    }
    assert_runs_now_and_then(&plugin, started);
}

#[tokio::test]
async fn it_works_again_once_the_program_does() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new(&format!("test $RUN -gt 1 || exit 1\n{}", super::issue("")));
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(reason(&testbed.get(&target).await), "exec: executable sh failed with exit code 1");
    testbed.until(Duration::from_secs(10), &target, |answer| answer.status == 200).await;
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_program_that_hangs_is_ended() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::new("sleep 600 & wait");
    let testbed = Testbed::builder()
        .cluster(CLUSTER, plugin.secret(CLUSTER, &member))
        .cluster("other", cluster("other", &member))
        .arg("--exec-timeout=2s")
        .start()
        .await;
    let (mut waiting, mut other) = (testbed.connect(Http::H2).await, testbed.connect(Http::H2).await);
    let (target, elsewhere) = (proxied(CLUSTER, PATH), proxied("other", PATH));
    let (answer, meanwhile) = tokio::join!(waiting.get(&target), async {
        plugin.running(1).await;
        other.get(&elsewhere).await
    });
    assert_eq!(meanwhile.status, 200);
    assert_eq!(reason(&answer), "exec: executable sh did not finish within 2s and was killed");
    plugin.ended().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_says_where_to_get_it() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens("").with("command", "no-such-plugin").with("installHint", "ask\nthe operator");
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let answer = testbed.get(&proxied(CLUSTER, PATH)).await;
    assert_eq!(reason(&answer), "exec: executable no-such-plugin not found: ask the operator");
}

#[tokio::test]
async fn answers_that_are_none_are_named() {
    let member = member(Http::H2.member_options()).await;
    for (body, expected) in [
        ("echo nonsense", "decoding stdout: no JSON object of kind ExecCredential (line 1, column 2)"),
        (r#"echo '{"apiVersion":"client.authentication.k8s.io/v1"}'"#, "exec plugin didn't return a status field"),
        (
            r#"echo '{"apiVersion":"client.authentication.k8s.io/v1","status":{}}'"#,
            "exec plugin didn't return a token or cert/key pair",
        ),
    ] {
        let testbed = Testbed::builder().cluster(CLUSTER, Plugin::new(body).secret(CLUSTER, &member)).start().await;
        assert_eq!(reason(&testbed.get(&proxied(CLUSTER, PATH)).await), expected);
    }
}

#[tokio::test]
async fn a_secret_that_says_nothing_to_run_is_told_so() {
    let member = member(Http::H2.member_options()).await;
    for (field, value, expected) in [
        ("command", json!(""), "missing \"command\" property on exec config object"),
        ("apiVersion", json!("v1"), "apiVersion must be client.authentication.k8s.io/v1"),
        ("interactiveMode", json!("Always"), "interactiveMode Always needs a terminal"),
    ] {
        let plugin = Plugin::tokens("").with(field, value);
        let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
        let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
        assert!(message.contains(expected), "{message}");
        assert_eq!(plugin.runs(), 0);
    }
}
