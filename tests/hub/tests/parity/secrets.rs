//! How a Secret becomes a `ClusterGateway`: the Go cluster-gateway's table of conversions, with the
//! differences.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{ENDPOINT_TYPE, KIND, appear, secret};
use crate::fixture::{Fixture, test};
use crate::viewer;

const HEALTHY: &str = "status.cluster.core.oam.dev/healthy";
const REASON: &str = "status.cluster.core.oam.dev/healthy-reason";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "parity::Secrets become clusters", convert),
        test(fixture, "parity::Secrets that are no clusters", not_converted),
    ]
}

/// A Secret, and the resulting `spec.access.endpoint`, type of the credential, and `status`.
struct Conversion {
    name: &'static str,
    labels: Value,
    annotations: Value,
    data: Value,
    endpoint: Value,
    credential: &'static str,
    status: Value,
}

const ADDRESS: &str = "https://member.example:6443";
const EXEC: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","command":"never-run"}"#;

// === impl Conversion ===

impl Conversion {
    /// The simplest: a token for a fixed address.
    fn new(name: &'static str, authority: &str) -> Self {
        Self {
            name,
            labels: json!({KIND: "ServiceAccountToken"}),
            annotations: json!({}),
            data: json!({"endpoint": format!("{ADDRESS}\n"), "ca.crt": authority, "token": "hidden"}),
            endpoint: json!({"type": "Const", "const": {"address": ADDRESS, "caBundle": BASE64.encode(authority)}}),
            credential: "ServiceAccountToken",
            status: json!({"healthy": false}),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn secret(&self) -> Value {
        secret(self.name, &self.labels, &self.annotations, &self.data)
    }
}

fn conversions(authority: &str) -> Vec<Conversion> {
    let new = |name| Conversion::new(name, authority);
    vec![
        new("converted-token"),
        new("converted-const").with(|it| it.labels[ENDPOINT_TYPE] = json!("Const")),
        new("converted-legacy-ca")
            .with(|it| it.data = json!({"endpoint": ADDRESS, "ca": authority, "token": "hidden"})),
        new("converted-tunnel").with(|it| {
            it.labels[ENDPOINT_TYPE] = json!("ClusterProxy");
            it.data = json!({"token": "hidden", "ca.crt": authority});
            it.endpoint = json!({"type": "ClusterProxy"});
        }),
        new("converted-dynamic").with(|it| {
            it.labels[KIND] = json!("Dynamic");
            it.data["exec"] = json!(EXEC);
            it.credential = "Dynamic";
        }),
        new("converted-proxied").with(|it| {
            it.data["proxy-url"] = json!("socks5://proxy.example:1080");
            it.endpoint["const"]["proxy-url"] = json!("socks5://proxy.example:1080");
        }),
        new("converted-healthy").with(|it| {
            it.annotations = json!({HEALTHY: "True"});
            it.status = json!({"healthy": true});
        }),
        new("converted-unhealthy").with(|it| {
            it.annotations = json!({HEALTHY: "0", REASON: "CertificateMismatch"});
            it.status = json!({"healthy": false, "healthyReason": "CertificateMismatch"});
        }),
    ]
}

fn convert(testbed: &Testbed) -> Result<()> {
    let conversions = conversions(&testbed.member.server.authority().root_pem());
    testbed.hub.apply(&conversions.iter().map(Conversion::secret).collect::<Vec<_>>())?;
    for Conversion { name, endpoint, credential, status, .. } in &conversions {
        let path = format!("/clustergateways/{name}");
        appear(testbed, &path)?;
        for route in Route::PROXIED {
            let object = viewer::get(testbed, route, &path)?.expect(StatusCode::OK)?.json()?;
            let access = json!({"endpoint": endpoint, "credential": {"type": credential}});
            ensure!(object["spec"]["access"] == access, "{object:#}\ninstead of {access:#}");
            ensure!(object["status"] == *status, "{object:#}\ninstead of {status:#}");
        }
        testbed.hub.forget_member(name)?;
    }
    Ok(())
}

/// Name, labels, data, code of a GET, a part of its message.
fn failures() -> Vec<(&'static str, Value, Value, u16, &'static str)> {
    let endpoint = "https://member.example";
    let token = json!({KIND: "ServiceAccountToken"});
    vec![
        ("wrong-unlabelled", json!({}), json!({"endpoint": endpoint, "token": "hidden"}), 404, "not found"),
        ("wrong-type", json!({KIND: "Password"}), json!({"endpoint": endpoint, "token": "hidden"}), 500, "Password"),
        ("wrong-no-endpoint", token.clone(), json!({"token": "hidden"}), 500, "endpoint"),
        (
            "wrong-endpoint",
            token.clone(),
            json!({"endpoint": "member.example:6443", "token": "hidden"}),
            500,
            "endpoint",
        ),
        ("wrong-no-token", token, json!({"endpoint": endpoint}), 500, "token"),
        (
            "wrong-no-key",
            json!({KIND: "X509Certificate"}),
            json!({"endpoint": endpoint, "tls.crt": "hidden"}),
            500,
            "tls.",
        ),
        ("wrong-no-exec", json!({KIND: "Dynamic"}), json!({"endpoint": endpoint}), 500, "exec"),
        ("wrong-exec", json!({KIND: "Dynamic"}), json!({"endpoint": endpoint, "exec": "{hidden"}), 500, "exec"),
    ]
}

fn not_converted(testbed: &Testbed) -> Result<()> {
    let failures = failures();
    let secrets = failures.iter().map(|(name, labels, data, ..)| secret(name, labels, &json!({}), data));
    testbed.hub.apply(&secrets.collect::<Vec<_>>())?;
    for (name, _, _, code, part) in &failures {
        for route in Route::PROXIED {
            let answer = viewer::get(testbed, route, &format!("/clustergateways/{name}"))?;
            let status = answer.expect(StatusCode::from_u16(*code)?).with_context(|| (*name).to_owned())?.json()?;
            let message = status["message"].as_str().unwrap_or_default();
            ensure!(message.contains(part) && message.contains(name), "{name}: {status}");
            // Other programs take these words for the cluster's removal.
            ensure!(!message.contains("no such cluster") && !message.contains("hidden"), "{name}: {status}");
        }
    }
    for route in Route::PROXIED {
        let list = viewer::get(testbed, route, "/clustergateways")?.expect(StatusCode::OK)?.text();
        ensure!(!list.contains("\"wrong-"), "a broken Secret is listed: {list}");
    }
    failures.iter().try_for_each(|(name, ..)| testbed.hub.forget_member(name))
}
