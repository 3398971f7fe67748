//! The token that the hub gets, on both sides of a stub.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kit::member::Recorded;
use kit::pki::Authority;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;

const SECRET: &str = "/api/v1/namespaces/c1/secrets/reader";
const OWNER: &str =
    "/apis/authentication.open-cluster-management.io/v1beta1/namespaces/c1/managedserviceaccounts/reader";
const LABEL: &str = "authentication.open-cluster-management.io/is-managed-serviceaccount";

/// A member whose account `tunnel/reader` gets tokens of five minutes that were issued `old`
/// seconds ago.
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

/// The hub's Secrets as they are written; before that, the answer `first`.
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

/// The member's kubeconfig, or a pod's token, may appear a moment later than the agent.
#[tokio::test]
async fn a_member_whose_kubeconfig_comes_late_is_asked_for_the_token_all_the_same() {
    let (stub, member) = (Stub::start().await, member(0).await);
    let _written = holding(&stub, None);
    let (path, good) = (stub.path("member"), stub.path("member.good"));
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    std::fs::write(&good, insecure(&member)).unwrap();
    // The open returns when the agent reads it.
    let late = std::thread::spawn({
        let path = path.clone();
        move || {
            let first = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::fs::rename(good, path).unwrap();
            std::io::Write::write_all(&mut &first, b"- not yet").unwrap();
        }
    });
    stub.joined_before(hour().0, hour().1).await;
    let account = SecretName { namespace: "tunnel".to_owned(), name: "reader".to_owned() };
    let agent = stub.run(Member::Kubeconfig(path), Some(account));
    eventually(SOON, || agent.metric("tunnel_agent_credential_filled") == 1).await;
    late.join().unwrap();
}

#[tokio::test]
async fn a_token_that_could_not_be_written_is_the_one_that_is_written_next() {
    let (stub, member) = (Stub::start().await, member(0).await);
    let tries = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&tries);
    stub.fault(move |request| {
        (request.method == Method::PATCH && request.path() == SECRET).then(|| {
            let mut seen = seen.lock();
            *seen += 1;
            if *seen < 3 { Reply::status(403, "not yet") } else { Reply::json(200, &json!({})) }
        })
    });
    let agent = run(&stub, &member).await;
    eventually(SOON, || agent.metric("tunnel_agent_credential_filled") == 1).await;
    let issued = member.requests().iter().filter(|request| request.path().ends_with("/token")).count();
    assert_eq!((*tries.lock(), issued), (3, 1));
}

/// Users of the hub delete the account there when they want no token.
#[tokio::test]
async fn a_secret_whose_account_was_deleted_on_the_hub_is_not_filled_again() {
    let (stub, member) = (Stub::start().await, member(0).await);
    let mut orphan = held("Opaque", Some("true"), "x");
    orphan["metadata"]["ownerReferences"] = json!([{"kind": "ManagedServiceAccount", "uid": "m1"}]);
    let written = holding(&stub, Some(orphan));
    let agent = run(&stub, &member).await;
    let asked = || member.requests().iter().filter(|request| request.path().ends_with("kube-root-ca.crt")).count();
    eventually(SOON, || asked() == 2).await;
    assert!(written.lock().is_empty());
    assert_eq!(agent.metric("tunnel_agent_credential_filled"), 0);
}

#[tokio::test]
async fn a_secret_that_belongs_to_an_account_of_before_is_given_to_the_one_there_is() {
    let (stub, member) = (Stub::start().await, member(0).await);
    let written = Arc::new(Mutex::new(Vec::<Recorded>::new()));
    let seen = Arc::clone(&written);
    let secret = |request: &Recorded| serde_json::from_slice::<Value>(&request.body()).unwrap();
    stub.fault(move |request| match (request.method.as_str(), request.path()) {
        ("GET", OWNER) => {
            let uid = if seen.lock().is_empty() { "m1" } else { "m2" };
            Some(Reply::json(200, &json!({"metadata": {"uid": uid}})))
        }
        ("GET", SECRET) => seen.lock().last().map(|held| Reply::json(200, &secret(held))),
        ("PATCH", SECRET) => {
            seen.lock().push(request.clone());
            Some(Reply::json(200, &json!({})))
        }
        _ => None,
    });
    let filled = |agent: &stub::Running| agent.metric("tunnel_agent_credential_filled") == 1;
    let agent = run(&stub, &member).await;
    eventually(SOON, || filled(&agent)).await;
    agent.kill().await;
    let agent = run(&stub, &member).await;
    eventually(SOON, || filled(&agent)).await;
    let owners: Vec<_> =
        written.lock().iter().map(|it| secret(it)["metadata"]["ownerReferences"][0]["uid"].clone()).collect();
    assert_eq!(owners, ["m1", "m2"]);
}
