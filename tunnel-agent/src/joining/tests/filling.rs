//! The token that the hub is given, on both sides of a stub.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kit::member::Recorded;
use kit::pki::Authority;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;

const SECRET: &str = "/api/v1/namespaces/c1/secrets/reader";
const LABEL: &str = "authentication.open-cluster-management.io/is-managed-serviceaccount";

/// A member whose account `tunnel/reader` gets tokens of five minutes that were issued a while ago.
async fn member(old: i64) -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    let authority = Authority::new("member").root_pem();
    member.on_any(move |request| match (request.method.as_str(), request.path()) {
        ("GET", "/api/v1/namespaces/tunnel/serviceaccounts/reader") => {
            Reply::json(200, &json!({"metadata": {"uid": "u1"}}))
        }
        ("GET", "/api/v1/namespaces/tunnel/configmaps/kube-root-ca.crt") => {
            Reply::json(200, &json!({"data": {"ca.crt": authority}}))
        }
        ("POST", "/api/v1/namespaces/tunnel/serviceaccounts/reader/token") => {
            Reply::json(201, &json!({"status": {"token": token("tunnel:reader", "u1", old)}}))
        }
        ("GET", "/livez") => Reply::full(200, &[], "ok"),
        _ => Reply::not_found(),
    });
    member
}

fn token(of: &str, uid: &str, old: i64) -> String {
    let issued = OffsetDateTime::now_utc().unix_timestamp() - old;
    let claims = json!({"sub": format!("system:serviceaccount:{of}"), "iat": issued, "exp": issued + 300,
        "kubernetes.io": {"serviceaccount": {"uid": uid}}});
    format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Those of the hub's Secret, as it would be; another's answer before.
fn holding(stub: &Stub, first: Option<Value>) -> Arc<Mutex<Vec<Recorded>>> {
    let written = Arc::new(Mutex::new(Vec::<Recorded>::new()));
    let seen = Arc::clone(&written);
    stub.fault(move |request| {
        if request.path() != SECRET {
            return None;
        }
        if request.method == Method::PATCH {
            seen.lock().push(request.clone());
            return Some(Reply::json(200, &json!({})));
        }
        let held = match seen.lock().last() {
            Some(last) => serde_json::from_slice(&last.body()).ok(),
            None => first.clone(),
        };
        Some(held.map_or_else(Reply::not_found, |held: Value| Reply::json(200, &held)))
    });
    written
}

async fn run(stub: &Stub, member: &FakeMember) -> stub::Running {
    stub.joined_before(hour().0, hour().1).await;
    let kubeconfig = stub.path("member");
    std::fs::write(&kubeconfig, insecure(member)).unwrap();
    let account = SecretName { namespace: "tunnel".to_owned(), name: "reader".to_owned() };
    stub.run(Member::Kubeconfig(kubeconfig), Some(account))
}

fn held(kind: &str, label: Option<&str>, token: &str) -> Value {
    json!({"type": kind, "metadata": {"labels": {LABEL: label}}, "data": {"token": STANDARD.encode(token)}})
}

#[tokio::test]
async fn the_hub_gets_a_token_and_another_at_four_fifths_of_its_life() {
    let (stub, member) = (Stub::start().await, member(238).await);
    let written = holding(&stub, None);
    let agent = run(&stub, &member).await;
    eventually(SOON, || written.lock().len() == 2).await;
    assert_eq!(agent.metric("tunnel_agent_credential_filled"), 1);
    let first = written.lock()[0].clone();
    assert_eq!(first.query(), Some("fieldManager=tunnel-agent&force=true"));
    let secret: Value = serde_json::from_slice(&first.body()).unwrap();
    assert_eq!((&secret["type"], &secret["metadata"]["labels"][LABEL]), (&json!("Opaque"), &json!("true")));
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ca.crt", "token"]);
    assert_eq!(secret["metadata"]["ownerReferences"], Value::Null, "there is no ManagedServiceAccount");
}

#[tokio::test]
async fn a_secret_that_somebody_else_fills_is_left_to_them() {
    let foreign = token("open-cluster-management-agent-addon:reader", "u2", 0);
    for (what, first) in [
        ("without the label", held("Opaque", None, "x")),
        ("another type", held("kubernetes.io/tls", Some("true"), "x")),
        ("another's token", held("Opaque", Some("true"), &foreign)),
    ] {
        let (stub, member) = (Stub::start().await, member(0).await);
        let written = holding(&stub, Some(first));
        let agent = run(&stub, &member).await;
        let asked = || member.requests().iter().filter(|request| request.path().ends_with("kube-root-ca.crt")).count();
        eventually(SOON, || asked() == 2).await;
        assert!(written.lock().is_empty(), "{what}");
        assert_eq!(agent.metric("tunnel_agent_credential_filled"), 0, "{what}");
    }
}

#[tokio::test]
async fn a_token_that_does_not_count_any_more_is_replaced_and_a_good_one_stays() {
    let ours = |uid: &str, old: i64| held("Opaque", Some("true"), &token("tunnel:reader", uid, old));
    let expired = held("Opaque", Some("true"), &token("other:reader", "u2", 400));
    for (what, first) in [
        ("of the account before this one", ours("u0", 0)),
        ("without its CA", ours("u1", 0)),
        ("at four fifths", ours("u1", 241)),
        ("another's that has expired", expired),
        ("no token", held("Opaque", Some("true"), "x")),
    ] {
        let (stub, member) = (Stub::start().await, member(0).await);
        let written = holding(&stub, Some(first));
        let agent = run(&stub, &member).await;
        eventually(SOON, || written.lock().len() == 1).await;
        eventually(SOON, || agent.metric("tunnel_agent_credential_filled") == 1).await;
        // Another process finds a good one.
        agent.kill().await;
        let agent = run(&stub, &member).await;
        eventually(SOON, || agent.metric("tunnel_agent_credential_filled") == 1).await;
        assert_eq!(written.lock().len(), 1, "{what}");
    }
}
