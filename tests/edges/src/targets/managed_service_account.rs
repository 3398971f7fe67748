//! Any `ManagedServiceAccount` with any Secret and any token: a token is kept only if it is its
//! own, and a status is written once.
//!
//! Input: changes of a good pair (`sources::changed`); `/object/claims` are those of the token,
//! unless the Secret has another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use register::managed_service_account::{Account, Judgement, LABEL, MemberAccount};
use register::service_account_token::ServiceAccountToken;
use serde_json::{Value, json};

use crate::sources::changed;

const NOW: i64 = 1_800_000_000;
const SUBJECT: &str = "system:serviceaccount:open-cluster-management-agent-addon:a";

pub const WORDS: &[&str] = &[
    "\n/object/spec/rotation/validity ",
    "\n/object/spec/ttlSecondsAfterCreation ",
    "\n/object/status/conditions/0/",
    "\n/object/status/expirationTimestamp ",
    "\n/object/status/tokenSecretRef/",
    "\n/object/metadata/finalizers/0 ",
    "\n/object/metadata/creationTimestamp ",
    "\n/object/claims/",
    "\n/object/claims/kubernetes.io/serviceaccount/uid ",
    "\n/secret/metadata/",
    "\n/secret/stringData/token ",
    "ownerReferences/0/uid ",
    "labels/authentication.open-cluster-management.io~1is-managed-serviceaccount ",
    "type kubernetes.io/tls",
    "TokenReported",
    "lastTransitionTime",
    "2027-01-15T08:00:00Z",
    "-9223372036854775808",
    "9223372036854775807",
    "8640h0m0s",
    ".5h",
    "\u{b5}s",
    "null",
    "{}",
    "[]",
    "\"\"",
];

fn good() -> Value {
    json!({
        "object": {"apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount",
            "metadata": {"namespace": "c1", "name": "a", "uid": "m", "creationTimestamp": "2027-01-15T07:00:00Z"},
            "spec": {"rotation": {"validity": "24h"}}, "status": {},
            "claims": {"iat": NOW - 100, "exp": NOW + 900, "sub": SUBJECT,
                "kubernetes.io": {"serviceaccount": {"uid": "s"}}}},
        "secret": {"metadata": {"namespace": "c1", "name": "a", "labels": {LABEL: "true"}, "ownerReferences": [{
            "apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount",
            "name": "a", "uid": "m"}]}, "stringData": {"ca.crt": "CA", "token": "claims"}}})
}

pub fn check(input: &[u8]) {
    let mut good = good();
    // The claims come first: the token is made of them.
    let Some(pair) = changed(good.clone(), input) else { return };
    let token = format!("head.{}.signature", URL_SAFE_NO_PAD.encode(pair.object["claims"].to_string()));
    good["secret"]["stringData"]["token"] = token.into();
    let Some(pair) = changed(good, input) else { return };
    if let Some(token) = ServiceAccountToken::read(input) {
        assert!(token.life() >= 0);
    }
    let Ok(account) = Account::read(&pair.object) else { return };
    let _ = (account.step(false, NOW), account.end(), account.finalizers(true));
    assert!(account.validity().is_ok_and(|seconds| seconds >= 0) || account.validity().is_err());
    let on_member = MemberAccount { uid: "s".to_owned(), is_managed: true };
    if let Judgement::Good { token, due } = account.judge(pair.secret.as_ref(), Some(&on_member), NOW) {
        assert_eq!((token.uid.as_str(), due >= NOW), ("s", true));
        assert_eq!(token.subject, format!("{}{}", &SUBJECT[..SUBJECT.len() - 1], account.name));
        settles(&pair.object, |account| account.reported(&token, false, NOW));
    }
    settles(&pair.object, |account| account.failed("why", NOW));
}

/// A status that was written is not written again.
fn settles(object: &Value, status: impl Fn(&Account) -> Option<Value>) {
    let mut object = object.clone();
    let read = |object: &Value| Account::read(object).expect("it was read before");
    let Some(written) = status(&read(&object)) else { return };
    object["status"] = written;
    assert_eq!(status(&read(&object)), None);
}
