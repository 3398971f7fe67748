//! A program runs for any caller that may use the cluster, if the operator allows the program.

use serde_json::json;
use system_tests::{ADMIN, CLUSTER, Http, Testbed, VIEWER, proxied};

use super::{PATH, Plugin, member};

const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";

#[tokio::test]
async fn whoever_may_not_use_the_cluster_runs_nothing() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens("");
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let mut viewer = testbed.anonymous(Http::H2).await.bearer(VIEWER);
    let answer = viewer.call("POST", &proxied(CLUSTER, PATH), &[], b"{}").await;
    assert_eq!(answer.status, 403);
    assert_eq!(testbed.anonymous(Http::H2).await.get(&proxied(CLUSTER, PATH)).await.status, 403);
    assert_eq!(plugin.runs(), 0);
    assert_eq!(viewer.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
async fn reading_clusters_runs_nothing() {
    let member = member(Http::H2.member_options()).await;
    let plugin = Plugin::tokens("");
    let builder = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).arg("--expose-credentials");
    let testbed = builder.start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let list = connection.get(CLUSTERS).await;
    assert_eq!(list.json()["items"][0]["spec"]["access"]["credential"]["type"], "Dynamic");
    assert_eq!(connection.get(&format!("{CLUSTERS}/{CLUSTER}")).await.status, 200);
    assert_eq!(plugin.runs(), 0);
}

#[tokio::test]
async fn only_programs_that_the_operator_names_are_run() {
    let member = member(Http::H2.member_options()).await;
    for (commands, runs) in [("aws,gke-gcloud-auth-plugin", 0), ("", 0), ("aws,sh", 1), ("*", 1)] {
        let plugin = Plugin::tokens("");
        let builder = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member));
        let testbed = builder.arg(&format!("--exec-commands={commands}")).start().await;
        let answer = testbed.anonymous(Http::H2).await.bearer(ADMIN).get(&proxied(CLUSTER, PATH)).await;
        assert_eq!(plugin.runs(), runs, "{commands:?}");
        if runs == 0 {
            let message = answer.status_message(503, "ServiceUnavailable");
            let expected = "failed to issue credential from external command: exec: executable sh is not allowed here";
            assert!(message.contains(expected) && message.contains("--exec-commands"), "{message}");
        } else {
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn programs_that_the_operator_names_run_in_an_environment_that_the_operator_allows() {
    let member = member(Http::H2.member_options()).await;
    let commands = "--exec-commands=sh";
    for (flags, name, runs) in [
        (&[commands][..], "BASH_ENV", 0),
        (&[commands], "AWS_REGION", 1),
        (&[commands, "--exec-env="], "AWS_REGION", 0),
        (&[commands, "--exec-env=BASH_ENV"], "BASH_ENV", 1),
        (&["--exec-commands=*"], "BASH_ENV", 1),
    ] {
        let plugin = Plugin::tokens("").with("env", json!([{"name": name, "value": "canary"}]));
        let builder = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member));
        let testbed = flags.iter().fold(builder, |builder, flag| builder.arg(flag)).start().await;
        let answer = testbed.anonymous(Http::H2).await.bearer(ADMIN).get(&proxied(CLUSTER, PATH)).await;
        assert_eq!(plugin.runs(), runs, "{flags:?} {name}");
        if runs == 0 {
            let message = answer.status_message(503, "ServiceUnavailable");
            assert!(message.contains(name) && message.contains("--exec-env"), "{message}");
            assert!(!message.contains("canary"), "{message}");
        } else {
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
}
