//! The ConfigMap with the CAs and front-proxy settings of the hub's clients, which a gateway reads
//! (`extension-apiserver-authentication`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::pki::Authority;

/// Name of the ConfigMap.
pub const AUTHENTICATION_NAME: &str = "extension-apiserver-authentication";
/// Namespace of the ConfigMap.
pub const AUTHENTICATION_NAMESPACE: &str = "kube-system";
/// The one common name its aggregator may have.
pub(super) const ALLOWED_NAME: &str = "front-proxy-client";

/// The ConfigMap as kube-apiserver 1.33 writes it.
pub(super) fn config_map(clients: &Authority, front_proxy: &Authority) -> Value {
    object(&json!({
        "client-ca-file": clients.root_pem(),
        "requestheader-client-ca-file": front_proxy.root_pem(),
        "requestheader-allowed-names": json!([ALLOWED_NAME]).to_string(),
        "requestheader-username-headers": r#"["X-Remote-User"]"#,
        "requestheader-uid-headers": r#"["X-Remote-Uid"]"#,
        "requestheader-group-headers": r#"["X-Remote-Group"]"#,
        "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
    }))
}

/// The ConfigMap with its data changed; one without data when there is none.
pub(super) fn changed(current: Option<&Value>, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Value {
    let data = current.and_then(|object| object["data"].as_object());
    let text = |(key, value): (&String, &Value)| (key.clone(), value.as_str().unwrap_or_default().to_owned());
    let mut data = data.into_iter().flatten().map(text).collect();
    change(&mut data);
    object(&json!(data))
}

fn object(data: &Value) -> Value {
    json!({"metadata": {"name": AUTHENTICATION_NAME, "namespace": AUTHENTICATION_NAMESPACE}, "data": data})
}
