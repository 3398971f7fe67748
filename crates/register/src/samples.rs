//! Common samples for the tests of readers.

use api::secret::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::pki::{Authority, Issued, Leaf};
use serde_json::{Value, json};

use crate::Rules;
use crate::endpoints::{DENIED, Endpoints};
use crate::reading::{Reading, SecretObject};

/// A text that must never be repeated.
pub(crate) const CANARY: &str = "c4n4ry";

pub(crate) fn rules() -> Rules {
    let denied = DENIED.split(',').map(|network| network.parse().unwrap()).collect();
    let own = vec![Endpoint::parse("https://gateway.example:9443", false).unwrap()];
    Rules {
        exec_commands: vec!["/plugins/login".to_owned()],
        exec_env: ["A", "B", "A=c4n4ry", "KEY"].map(str::to_owned).to_vec(),
        allow_insecure: false,
        endpoints: Endpoints { denied, own, ..Endpoints::default() },
    }
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn identity() -> (Authority, Issued) {
    let authority = Authority::new("member-ca");
    let issued = authority.issue(&Leaf::client("admin"));
    (authority, issued)
}

/// A valid kubeconfig, for tests to break.
pub(crate) fn kubeconfig() -> Value {
    let (authority, issued) = identity();
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin@c1", "preferences": {},
        "clusters": [{"name": "c1", "cluster": {
            "server": "https://10.0.0.7:6443", "certificate-authority-data": base64(authority.certificate_pem())}}],
        "contexts": [{"name": "admin@c1", "context": {"cluster": "c1", "user": "admin"}}],
        "users": [{"name": "admin", "user": {
            "client-certificate-data": base64(&issued.certificate_pem),
            "client-key-data": base64(&issued.key_pem)}}],
    })
}

/// A Secret `name` in the namespace `ns`, as JSON.
pub(crate) fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<_, _> =
        data.iter().map(|(key, value)| ((*key).to_owned(), base64(value).into())).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": {"namespace": "ns", "name": name, "uid": "s-1", "labels": {}}})
}

/// `document` with the value at `pointer` (RFC 6901) replaced; the last segment may be new.
pub(crate) fn with(mut document: Value, pointer: &str, value: impl Into<Value>) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let field = field.replace("~1", "/");
    match document.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[field.parse::<usize>().unwrap()] = value.into(),
        parent => parent[field] = value.into(),
    }
    document
}

pub(crate) fn read_secret(secret: &Value) -> SecretObject {
    SecretObject::read(secret).unwrap()
}

/// A reading in one line, as people see it.
pub(crate) fn told(reading: &Reading) -> String {
    match reading {
        Reading::Register(_) => "registered".to_owned(),
        Reading::Waiting(waiting) => format!("waiting: {waiting}"),
        Reading::Paused => "paused".to_owned(),
        Reading::Refused(refused) => format!("refused: {refused}"),
    }
}
