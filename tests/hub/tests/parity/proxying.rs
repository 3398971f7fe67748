//! The table of the proxy handler: a plain request, an absent cluster, an endpoint with a path,
//! `dryRun` with dots in names, and credentials that a program issues.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{ENDPOINT_TYPE, KIND, PROMPT, appear, secret};
use crate::access::{bearer, client, who_am_i};
use crate::fixture::{Fixture, test};

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "parity::proxy/healthz says ok, with kubectl too", healthz),
        test(fixture, "parity::an absent cluster is named", absent),
        test(fixture, "parity::an endpoint with a path of its own", sub_path),
        test(fixture, "parity::dryRun reaches members with dots in their names", dry_run),
        test(fixture, "parity::a program issues a token or a certificate", issued),
        test(fixture, "parity::insecure-skip-tls-verify, and no authority at all", insecure),
    ]
}

fn send(testbed: &Testbed, route: Route, method: &Method, cluster: &str, path: &str, body: &str) -> Result<Response> {
    let headers = [("authorization", &*bearer(&testbed.token)), ("content-type", "application/json")];
    let path = format!("{}{path}", Testbed::proxy_path(cluster));
    client(testbed, route).send(method, &path, &headers, Bytes::from(body.to_owned()))
}

fn get(testbed: &Testbed, route: Route, cluster: &str, path: &str) -> Result<Response> {
    send(testbed, route, &Method::GET, cluster, path, "")
}

fn healthz(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        ensure!(get(testbed, route, CLUSTER, "/healthz")?.expect(StatusCode::OK)?.text() == "ok", "another word");
    }
    let text = testbed.hub.server.kubectl().ok(&format!("get --raw {}/healthz", Testbed::proxy_path(CLUSTER)))?;
    ensure!(text == "ok", "{text}");
    Ok(())
}

fn absent(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        for path in ["/healthz", "/api/v1/pods?watch=true", ""] {
            let status = get(testbed, route, "missing.example", path)?.expect(StatusCode::NOT_FOUND)?.json()?;
            let message = status["message"].as_str().unwrap_or_default();
            ensure!(message.starts_with("no such cluster missing.example"), "{status}");
        }
    }
    Ok(())
}

/// The member as a cluster whose endpoint ends in `/apis`, with and without a slash.
fn sub_path(testbed: &Testbed) -> Result<()> {
    for (cluster, end) in [("below.apis", "/apis"), ("below.slash", "/apis/")] {
        let endpoint = format!("{}{end}", testbed.member.server.url());
        let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&endpoint);
        testbed.hub.register_member(cluster, &secret)?;
        appear(testbed, &format!("/clustergateways/{cluster}"))?;
        for route in Route::PROXIED {
            let list = wait::until("the cluster", PROMPT, || {
                get(testbed, route, cluster, "/apps/v1")?.expect(StatusCode::OK)
            })?;
            ensure!(list.json()?["groupVersion"] == "apps/v1", "{}", list.text());
            // Nothing outside of the endpoint's own path can be reached.
            for path in ["/../api/v1", "/apps/../../api/v1", "/%2e%2e/api/v1", "/..%2fapi/v1", "/..\\api"] {
                let answer = get(testbed, route, cluster, path);
                let refused = answer.as_ref().map_or(true, |answer| answer.status == StatusCode::BAD_REQUEST);
                ensure!(refused, "{path}: {answer:?}");
            }
            get(testbed, route, cluster, "/api/v1")?.expect(StatusCode::NOT_FOUND)?;
        }
        testbed.hub.forget_member(cluster)?;
    }
    Ok(())
}

/// With the Go cluster-gateway a dot in the name made it "dryRun is not supported".
fn dry_run(testbed: &Testbed) -> Result<()> {
    let cluster = "dry.run.example";
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    for route in Route::PROXIED {
        wait::until("the cluster", PROMPT, || get(testbed, route, cluster, "/healthz")?.expect(StatusCode::OK))?;
        let name = format!("never-made-{}", route.name());
        let path =
            format!("/api/v1/namespaces/default/configmaps?dryRun=All&fieldManager={name}&fieldValidation=Strict");
        let body = json!({"metadata": {"name": name}}).to_string();
        send(testbed, route, &Method::POST, cluster, &path, &body)?.expect(StatusCode::CREATED)?;
        let made = get(testbed, route, cluster, &format!("/api/v1/namespaces/default/configmaps/{name}"))?;
        made.expect(StatusCode::NOT_FOUND)?;
        let arrived = format!("?dryRun=All\\u0026fieldManager={name}\\u0026fieldValidation=Strict");
        ensure!(testbed.member.has_seen(&arrived)?, "another query arrived than {arrived}");
    }
    testbed.hub.forget_member(cluster)
}

/// `sh` as the plugin: it prints a given `ExecCredential`.
fn dynamic(testbed: &Testbed, name: &str, status: &Value) -> Value {
    let version = "client.authentication.k8s.io/v1";
    let credential = json!({"apiVersion": version, "kind": "ExecCredential", "status": status}).to_string();
    let env = json!([{"name": "CREDENTIAL", "value": credential}]);
    let exec = json!({"apiVersion": version, "command": "sh", "args": ["-c", "printf %s \"$CREDENTIAL\""], "env": env});
    let data = json!({
        "endpoint": testbed.member.server.url(),
        "ca.crt": testbed.member.server.authority().root_pem(),
        "exec": exec.to_string(),
    });
    secret(name, &json!({KIND: "Dynamic", ENDPOINT_TYPE: "Const"}), &json!({}), &data)
}

fn issued(testbed: &Testbed) -> Result<()> {
    let identity = testbed.member.server.authority().issue(&Leaf::client("issued").group("system:masters"));
    let certificate = json!({"clientCertificateData": identity.chain_pem, "clientKeyData": identity.key_pem});
    let cases = [
        ("issued-token", json!({"token": testbed.member_token}), "system:serviceaccount:default:gateway"),
        ("issued-certificate", certificate, "issued"),
    ];
    for (cluster, status, user) in &cases {
        testbed.hub.apply(&[dynamic(testbed, cluster, status)])?;
        let object = appear(testbed, &format!("/clustergateways/{cluster}"))?;
        ensure!(object["spec"]["access"]["credential"] == json!({"type": "Dynamic"}), "{object}");
        for route in Route::PROXIED {
            let name = who_am_i(testbed, route, cluster, "")?;
            ensure!(name == *user, "{cluster} via {} is used as {name}", route.name());
        }
        testbed.hub.forget_member(cluster)?;
    }
    let cluster = "issued-nothing";
    testbed.hub.apply(&[dynamic(testbed, cluster, &json!({}))])?;
    appear(testbed, &format!("/clustergateways/{cluster}"))?;
    for route in Route::PROXIED {
        let status = get(testbed, route, cluster, "/healthz")?.expect(StatusCode::SERVICE_UNAVAILABLE)?.json()?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(message.contains("external command") && message.contains("didn't return a token"), "{status}");
        ensure!(!message.contains("no such cluster"), "{status}");
    }
    testbed.hub.forget_member(cluster)
}

/// The Go cluster-gateway does not verify the member if there is no CA. Here that must be
/// requested.
fn insecure(testbed: &Testbed) -> Result<()> {
    let data = json!({"endpoint": testbed.member.server.url(), "token": testbed.member_token});
    let mut insecure = data.clone();
    insecure["insecure-skip-tls-verify"] = json!("true");
    let labels = json!({KIND: "ServiceAccountToken"});
    testbed.hub.apply(&[
        secret("unverified", &labels, &json!({}), &insecure),
        secret("no-authority", &labels, &json!({}), &data),
    ])?;
    let object = appear(testbed, "/clustergateways/unverified")?;
    ensure!(object["spec"]["access"]["endpoint"]["const"]["insecure"] == true, "{object}");
    let object = appear(testbed, "/clustergateways/no-authority")?;
    ensure!(object["spec"]["access"]["endpoint"]["const"]["insecure"].is_null(), "{object}");
    for route in Route::PROXIED {
        get(testbed, route, "unverified", "/healthz")?.expect(StatusCode::OK)?;
        let status =
            get(testbed, route, "no-authority", "/healthz")?.expect(StatusCode::SERVICE_UNAVAILABLE)?.json()?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(message.contains("no-authority") && message.contains("ca.crt"), "the way out is not named: {status}");
    }
    testbed.hub.forget_member("unverified")?;
    testbed.hub.forget_member("no-authority")
}
