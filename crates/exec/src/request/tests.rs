//! The input of a plugin, and which requests share a credential.

use api::secret::ExecApiVersion;

use super::*;
use crate::testing::{config, request, with_env};

fn info(version: ExecApiVersion, cluster: Option<ClusterInfo>) -> serde_json::Value {
    let config = ExecConfig { api_version: version, provide_cluster_info: cluster.is_some(), ..config("plugin", &[]) };
    let request = Request::new(config, || cluster.unwrap_or_default());
    serde_json::from_str(request.info().expose_secret()).unwrap()
}

fn cluster() -> ClusterInfo {
    ClusterInfo {
        server: "https://member:6443".into(),
        tls_server_name: Some("kubernetes".into()),
        insecure_skip_tls_verify: false,
        certificate_authority: Some(b"PEM".to_vec()),
        proxy_url: Some("http://u:p@proxy:3128".into()),
    }
}

#[test]
fn the_plugin_is_told_its_version_and_that_nobody_is_there() {
    let expected =
        r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}"#;
    assert_eq!(request(config("plugin", &[])).info().expose_secret(), expected);
    let beta = info(ExecApiVersion::V1Beta1, None);
    assert_eq!(beta["apiVersion"], "client.authentication.k8s.io/v1beta1");
}

#[test]
fn the_cluster_has_the_keys_of_a_kubeconfig() {
    let told = info(ExecApiVersion::V1, Some(cluster()));
    let expected = serde_json::json!({
        "server": "https://member:6443",
        "tls-server-name": "kubernetes",
        "certificate-authority-data": "UEVN",
        "proxy-url": "http://u:p@proxy:3128",
    });
    assert_eq!(told["spec"]["cluster"], expected);
    let bare = ClusterInfo { server: "https://m".into(), insecure_skip_tls_verify: true, ..ClusterInfo::default() };
    let expected = serde_json::json!({"server": "https://m", "insecure-skip-tls-verify": true});
    assert_eq!(info(ExecApiVersion::V1, Some(bare))["spec"]["cluster"], expected);
}

#[test]
fn a_cluster_that_is_not_told_makes_no_difference() {
    let one = Request::new(config("plugin", &[]), cluster);
    assert_eq!(one.fingerprint(), request(config("plugin", &[])).fingerprint());
}

#[test]
fn any_difference_in_content_is_another_request() {
    let base = || config("plugin", &["a", "b"]);
    let told = |cluster: ClusterInfo| Request::new(ExecConfig { provide_cluster_info: true, ..base() }, || cluster);
    let requests = [
        request(base()),
        request(config("plugin", &["ab"])),
        request(config("plugin", &["a"])),
        request(config("plugina", &["b"])),
        request(config("plugin2", &["a", "b"])),
        request(ExecConfig { api_version: ExecApiVersion::V1Beta1, ..base() }),
        request(with_env(base(), &[("A", "1")])),
        request(with_env(base(), &[("A", "2")])),
        request(with_env(base(), &[("A1", "")])),
        request(config("plugin", &["a", "b", "A", "1"])),
        told(ClusterInfo::default()),
        told(cluster()),
        told(ClusterInfo { proxy_url: Some("http://u:q@proxy:3128".into()), ..cluster() }),
    ];
    for (index, one) in requests.iter().enumerate() {
        for other in &requests[..index] {
            assert_ne!(one.fingerprint(), other.fingerprint(), "{one:?} {other:?}");
        }
    }
    assert_eq!(request(base()).fingerprint(), request(base()).fingerprint());
}
