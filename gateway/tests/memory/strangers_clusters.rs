//! `ManagedCluster`s that anybody with a bootstrap credential may create, of nothing but labels.

use std::process::Command;

use bytes::Bytes;
use kit::client::Client;
use kit::hub::{Call, FakeHub, Fault, Resource, TokenUser};
use kit::pki::{Authority, Leaf, Trust};
use kit::process::LoggedProcess;
use serde_json::Value;

/// Of one page.
const CLUSTERS: usize = 25;
/// Bytes of each: a hub stores no larger object.
const LARGEST: usize = 1_400_000;
const LIST: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters";

/// A page of clusters, each with as many labels as it has room for.
fn page() -> Bytes {
    let labels: Vec<_> = (0..LARGEST / r#""aaaaa":"","#.len()).map(|number| format!(r#""{number:05x}":"""#)).collect();
    let labels = labels.join(",");
    let clusters = (0..CLUSTERS).map(|number| {
        format!(
            r#"{{"metadata":{{"name":"stranger{number}","resourceVersion":"7","labels":{{{labels}}}}},
            "spec":{{"managedClusterClientConfigs":[{{"url":"https://127.0.0.1:1"}}]}}}}"#
        )
    });
    let clusters = clusters.collect::<Vec<_>>().join(",");
    format!(r#"{{"kind":"List","metadata":{{"resourceVersion":"1000"}},"items":[{clusters}]}}"#).into()
}

/// Resident bytes at most of a gateway that has listed them, at its start and for a caller.
pub async fn resident_after_lists() -> u64 {
    let hub = FakeHub::start().await;
    hub.install(Resource::ManagedClusters);
    hub.allow_all();
    hub.add_token("admin", TokenUser::new("admin", &[]));
    hub.fail(Call::List(Resource::ManagedClusters), Fault::Answer(200, "application/json", page()));
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new("gateway-ca");
    let files = authority.issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").expect("written");
    let kubeconfig = hub.write_kubeconfig(directory.path()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-gateway"));
    command
        .env_clear()
        .args(["--ocm-integration", "--secure-port=0", "--bind-address=127.0.0.1", "--log-format=json"])
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--tls-cert-file={}", files.certificate.display()))
        .arg(format!("--tls-private-key-file={}", files.key.display()));
    let process = LoggedProcess::start(&mut command);
    let address = process.line("serving")["address"].as_str().expect("text").parse().expect("an address");
    let connection = Client::new(address, Trust::Authority(&authority), None).h2().await.expect("a connection");
    let list = async |query: &str| -> Value {
        let answer = connection.get(&format!("{LIST}{query}"), &[("authorization", "Bearer admin")]).await;
        let text = answer.expect("a head").text().await.expect("a body");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    };
    hub.called(Call::List(Resource::ManagedClusters), 1).await;
    assert_eq!(list("").await["items"].as_array().map(Vec::len), Some(CLUSTERS + 1), "these, and the hub");
    // What is not kept is not there for selectors, whatever they ask.
    let others = list("?labelSelector=a%21%3Db").await;
    assert_eq!(others["items"].as_array().map(Vec::len), Some(1), "{others}");
    process.most_resident()
}
