use std::sync::Arc;

use hub::through::client_through;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use secrecy::SecretString;

use super::super::dialer::HubWay;
use super::super::request::Pending;
use super::*;

fn secret(kind: &str, label: bool, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<_, _> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    let labels = if label { json!({LABEL: "true"}) } else { Value::Null };
    json!({"type": kind, "metadata": {"labels": labels}, "data": data})
}

#[test]
fn a_secret_of_somebody_else_is_not_taken() {
    let klusterlet = [("cluster-name", "c1"), ("agent-name", "a"), ("tls.crt", "x"), ("tls.key", "x")];
    let others = [("tls.crt", "x"), ("tls.key", "x")];
    let more = [&klusterlet[..], &[("password", "x")]].concat();
    for (what, secret, is_taken) in [
        ("ours", secret("Opaque", true, &more), true),
        ("another agent's", secret("Opaque", true, &[("cluster-name", "c2"), ("agent-name", "a")]), false),
        ("one made for us", secret("Opaque", false, &[]), true),
        ("a klusterlet's", secret("Opaque", false, &klusterlet), true),
        ("a klusterlet's that has just begun", secret("Opaque", false, &klusterlet[..2]), true),
        ("another cluster's", secret("Opaque", false, &[("cluster-name", "c2"), ("agent-name", "a")]), false),
        ("a certificate", secret("Opaque", false, &others), false),
        ("with more in it", secret("Opaque", false, &more), false),
        ("a password", secret("Opaque", false, &[("password", "x")]), false),
        ("a token", secret("kubernetes.io/service-account-token", true, &[]), false),
    ] {
        assert_eq!(is_own(&secret, "c1"), is_taken, "{what}");
    }
}

enum Held {
    Nothing,
    Made(Value),
    Sent(Box<Recorded>),
}

impl Held {
    fn value(&self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Made(value) => Some(value.clone()),
            Self::Sent(request) => serde_json::from_slice(&request.body()).ok(),
        }
    }
}

/// An API server with one Secret, or none.
struct Member {
    fake: FakeMember,
    held: Arc<Mutex<Held>>,
    writes: Arc<Mutex<usize>>,
    directory: tempfile::TempDir,
}

impl Member {
    async fn start() -> Self {
        let fake = FakeMember::start(MemberOptions::default()).await;
        let (held, writes) = (Arc::new(Mutex::new(Held::Nothing)), Arc::new(Mutex::new(0)));
        let (answering, counted) = (Arc::clone(&held), Arc::clone(&writes));
        fake.on_any(move |request: &Recorded| {
            let mut held = answering.lock();
            if request.method != http::Method::GET {
                // Its body is still being sent.
                *held = Held::Sent(Box::new(request.clone()));
                *counted.lock() += 1;
                return Reply::json(200, &json!({}));
            }
            held.value().map_or_else(Reply::not_found, |held| Reply::json(200, &held))
        });
        Self { fake, held, writes, directory: tempfile::tempdir().unwrap() }
    }

    async fn secret(&self) -> StateSecret {
        let kubeconfig = self.directory.path().join("member");
        std::fs::write(&kubeconfig, super::super::tests::insecure(&self.fake)).unwrap();
        let dial = super::super::dialer::through(Arc::new(crate::outbound::Outbound::direct()));
        let client = client_through(Some(&kubeconfig), "test", dial).await.unwrap();
        let name = SecretName { namespace: "tunnel".to_owned(), name: "state".to_owned() };
        StateSecret::new(Requests::new(client), name, "c1".to_owned())
    }

    /// A state with a certificate that is valid for this many hours, or none.
    fn state(&self, name: &str, hours: Option<i64>) -> StateDirectory {
        let state = StateDirectory::open(&self.directory.path().join(name)).unwrap();
        let agent = state.agent_name("c1").unwrap();
        if let Some(hours) = hours {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            let own = "system:open-cluster-management:c1";
            params.distinguished_name.push(DnType::OrganizationName, own);
            params.distinguished_name.push(DnType::CommonName, format!("{own}:{agent}"));
            params.not_after = time::OffsetDateTime::now_utc() + time::Duration::hours(hours);
            let pem = params.self_signed(&key).unwrap().pem();
            let pending = Pending { name: "r".to_owned(), key: SecretString::from(key.serialize_pem()) };
            state.take(&pending, pem.as_bytes(), &HubWay::default()).unwrap();
        }
        state
    }
}

#[tokio::test]
async fn the_certificate_that_ends_last_counts() {
    for (what, local, held, is_restored) in [
        ("a backup's", Some(9), Some(2), false),
        ("the same", Some(9), Some(9), false),
        ("a directory from an image", Some(2), Some(9), true),
        ("a directory's that has expired", Some(-1), Some(9), true),
        ("a new directory", None, Some(9), true),
        ("of one that was asking only", Some(9), None, false),
    ] {
        let member = Member::start().await;
        member.secret().await.save(&member.state("other", held)).await.unwrap();
        let (state, secret) = (member.state("local", local), member.secret().await);
        let before = state.files().unwrap();
        secret.restore(&state).await.unwrap();
        assert_eq!(state.files().unwrap() != before, is_restored, "{what}");
        // The Secret counts, because the next start reads it.
        secret.save(&state).await.unwrap();
        assert_eq!(files(&member.held.lock().value().unwrap()), state.files().unwrap(), "{what}");
    }
}

#[tokio::test]
async fn a_secret_that_was_made_for_us_and_is_empty_takes_nothing_away() {
    let member = Member::start().await;
    *member.held.lock() = Held::Made(secret("Opaque", false, &[]));
    let (state, own) = (member.state("local", None), member.secret().await);
    let before = state.files().unwrap();
    own.restore(&state).await.unwrap();
    assert_eq!(state.files().unwrap(), before);
    own.save(&state).await.unwrap();
    assert_eq!(files(&member.held.lock().value().unwrap()), before);
}

#[tokio::test]
async fn a_secret_that_somebody_deletes_or_changes_is_written_again_and_no_other() {
    let member = Member::start().await;
    let (state, mut own) = (member.state("local", Some(9)), member.secret().await);
    own.save(&state).await.unwrap();
    let held = || member.held.lock().value().unwrap();
    let good = held();
    *member.held.lock() = Held::Nothing;
    own.save(&state).await.unwrap();
    assert_eq!(*member.writes.lock(), 1, "it is believed for a while");
    own.believed = Duration::ZERO;
    own.save(&state).await.unwrap();
    assert_eq!(held(), good);
    let mut changed = good.clone();
    changed["data"]["tls.key"] = "eA==".into();
    *member.held.lock() = Held::Made(changed);
    own.save(&state).await.unwrap();
    assert_eq!(held(), good);
    own.save(&state).await.unwrap();
    assert_eq!(*member.writes.lock(), 3, "nothing is written that is there");
}
