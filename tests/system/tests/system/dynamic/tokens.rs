//! A token is issued when the first request needs it, in both versions of the protocol.

use system_tests::{CLUSTER, Http, Testbed, across_http, proxied};

use super::{PATH, Plugin, V1, member, seen};

across_http!(a_token_is_issued_once_and_used);

async fn a_token_is_issued_once_and_used(http: Http) {
    let member = member(http.member_options()).await;
    let plugin = Plugin::tokens("");
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    assert_eq!(plugin.runs(), 0, "nobody asked yet");
    let mut connection = testbed.connect(http).await;
    for body in [&b""[..], b"{}"] {
        let answer = connection.call("POST", &proxied(CLUSTER, PATH), &[], body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(seen(&member), ["Bearer token-1", "Bearer token-1"]);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn the_older_version_is_spoken_too() {
    let member = member(Http::H2.member_options()).await;
    let beta = "client.authentication.k8s.io/v1beta1";
    let body = format!(
        r#"case "$KUBERNETES_EXEC_INFO" in *{beta}*) ;; *) exit 1;; esac
        printf '{{"apiVersion":"{beta}","status":{{"token":"older"}}}}'"#
    );
    let plugin = Plugin::new(&body).with("apiVersion", beta);
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let answer = testbed.get(&proxied(CLUSTER, PATH)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(seen(&member), ["Bearer older"]);

    let mixed = Plugin::tokens("").with("apiVersion", beta);
    let testbed = Testbed::builder().cluster(CLUSTER, mixed.secret(CLUSTER, &member)).start().await;
    let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
    let expected = format!("exec plugin is configured to use API version {beta}, plugin returned version {V1}");
    assert!(message.contains(&expected), "{message}");
}

#[tokio::test]
async fn the_program_is_told_of_the_cluster_if_it_wants_that() {
    let member = member(Http::H2.member_options()).await;
    for wants in [true, false] {
        let body = format!("printf '%s' \"$KUBERNETES_EXEC_INFO\" > $DIR/info\n{}", super::issue(""));
        let plugin = Plugin::new(&body).with("provideClusterInfo", wants);
        let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
        assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
        let info = std::fs::read(plugin.directory().join("info")).expect("the program wrote it");
        let info: serde_json::Value = serde_json::from_slice(&info).expect("it is JSON");
        assert_eq!((&info["kind"], &info["spec"]["interactive"]), (&"ExecCredential".into(), &false.into()));
        let cluster = &info["spec"]["cluster"];
        assert_eq!(cluster.is_object(), wants);
        if wants {
            assert_eq!(cluster["server"], kit::member::FakeMember::url(&member));
            assert!(cluster["certificate-authority-data"].as_str().is_some_and(|data| data.len() > 100));
        }
    }
}

#[tokio::test]
async fn the_environment_of_the_secret_reaches_the_program() {
    let member = member(Http::H2.member_options()).await;
    let body = format!(r#"printf '{{"apiVersion":"{V1}","status":{{"token":"%s"}}}}' "$WORD""#);
    let plugin = Plugin::new(&body).with("env", serde_json::json!([{"name": "WORD", "value": "from-the-secret"}]));
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(seen(&member), ["Bearer from-the-secret"]);
}
