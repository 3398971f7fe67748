//! `KUBERNETES_EXEC_INFO`: the `ExecCredential` in a plugin's environment
//! (`k8s.io/client-go/pkg/apis/clientauthentication`).

use api::secret::ExecApiVersion;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::ClusterInfo;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential<'a> {
    kind: &'static str,
    api_version: &'static str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster<'a>>,
    /// Always false: no person can answer.
    interactive: bool,
}

/// Keys and omissions equal those of the cluster in a kubeconfig file.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy_url: Option<&'a str>,
}

pub(super) fn json(version: ExecApiVersion, cluster: Option<&ClusterInfo>) -> SecretString {
    let cluster = cluster.map(|cluster| Cluster {
        server: &cluster.server,
        tls_server_name: cluster.tls_server_name.as_deref(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: cluster.certificate_authority.as_ref().map(|pem| STANDARD.encode(pem)),
        proxy_url: cluster.proxy_url.as_ref().map(ExposeSecret::expose_secret),
    });
    let spec = Spec { cluster, interactive: false };
    let credential = ExecCredential { kind: "ExecCredential", api_version: version.as_str(), spec };
    serde_json::to_string(&credential).expect("texts and booleans are JSON").into()
}
