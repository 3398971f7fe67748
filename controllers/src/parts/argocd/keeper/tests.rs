//! Tests of tokens on a hub in memory, which knows the tokens that it issued.

use std::collections::HashSet;
use std::sync::Arc;

use api::cluster_name::ClusterName;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::Client;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use register::profile::GatewayAddress;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::*;
use crate::parts::argocd::secret::{Content, HeldSecret};
use crate::scripted;

const SUBJECT: &str = "system:serviceaccount:argocd:deployer";

fn token(subject: &str, uid: &str, issued: i64, life: i64) -> Token {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"sub": subject, "iat": issued, "exp": issued + life,
        "kubernetes.io": {"serviceaccount": {"uid": uid}}});
    let text = format!("{}.{}.{}", part(json!({"alg": "none"})), part(claims), part(json!("signature")));
    Token::read(SecretString::from(text)).unwrap()
}

/// A token of the account with this UID, issued now.
pub fn of_account(uid: &str) -> Token {
    token(SUBJECT, uid, now_seconds(), LIFE)
}

fn argocd() -> Argocd {
    Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) }
}

#[derive(Default)]
struct Issuer {
    known: HashSet<String>,
    issued: usize,
    fails: bool,
    /// Number of coming reviews that fail.
    failing_reviews: u32,
}

// === impl Issuer ===

impl Issuer {
    fn answer(&mut self, uri: &str, body: &Value) -> (u16, Value) {
        let user = json!({"username": SUBJECT, "uid": "u1"});
        if uri.contains("/tokenreviews") && self.failing_reviews > 0 {
            self.failing_reviews -= 1;
            return (500, json!({"kind": "Status", "apiVersion": "v1", "code": 500, "message": "broken"}));
        }
        if uri.contains("/tokenreviews") {
            let is_known = body["spec"]["token"].as_str().is_some_and(|text| self.known.contains(text));
            let status = if is_known { json!({"authenticated": true, "user": user}) } else { json!({}) };
            return (
                201,
                json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {}, "status": status}),
            );
        }
        if self.fails {
            return (500, json!({"kind": "Status", "apiVersion": "v1", "code": 500, "message": "broken"}));
        }
        self.issued += 1;
        let issued = token(SUBJECT, "u1", now_seconds() + i64::try_from(self.issued).unwrap(), LIFE);
        let text = issued.text.expose_secret();
        self.known.insert(text.to_owned());
        let status = json!({"token": text, "expirationTimestamp": "2030-01-01T00:00:00Z"});
        let (kind, version) = ("TokenRequest", "authentication.k8s.io/v1");
        (201, json!({"kind": kind, "apiVersion": version, "spec": {"audiences": []}, "status": status}))
    }
}

fn client(issuer: &Arc<Mutex<Issuer>>) -> Client {
    let issuer = Arc::clone(issuer);
    scripted::client(move |head, body| Some(issuer.lock().answer(&head.uri.to_string(), &body)))
}

/// A part on a hub, with Secrets that have these tokens.
struct Place {
    issuer: Arc<Mutex<Issuer>>,
    argocd: Argocd,
    inventory: Inventory,
    metrics: Metrics,
    wakes: Wakes,
}

// === impl Place ===

impl Place {
    fn new(held: &[&Token]) -> Self {
        let inventory = Inventory::new(20, &argocd());
        for (number, token) in held.iter().enumerate() {
            put(&inventory, number, token);
        }
        Self {
            issuer: Arc::default(),
            argocd: argocd(),
            inventory,
            metrics: Metrics::register(&mut Registry::default(), Arc::default()),
            wakes: Wakes::default(),
        }
    }

    fn keeper(&self) -> Keeper<'_> {
        let hub = LeaderClient { client: client(&self.issuer), may_write: Arc::new(|| Duration::from_mins(1)) };
        Keeper { hub, argocd: &self.argocd, inventory: &self.inventory, metrics: &self.metrics, wakes: &self.wakes }
    }

    /// Keeps the token for `time` while the account has this UID.
    async fn keep(&self, uid: Option<&str>, time: Duration) {
        let (_account, followed) = watch::channel(uid.map(str::to_owned));
        let _ = timeout(time, self.keeper().keep(followed)).await;
    }

    fn text(&self) -> Option<String> {
        self.inventory.token().map(|token| token.text.expose_secret().to_owned())
    }
}

fn put(inventory: &Inventory, number: usize, token: &Token) {
    let cluster = ClusterName::parse(&format!("c{number}")).unwrap();
    let gateway = GatewayAddress { url: "https://g".into(), ca: None };
    let (name, held) = HeldSecret::read(&Content::new(&cluster, &gateway, &token.text).secret(&cluster)).unwrap();
    inventory.put_cluster(&name, true);
    inventory.put_secret(name, held);
}

fn text(token: &Token) -> String {
    token.text.expose_secret().to_owned()
}

#[test]
fn a_token_serves_for_four_fifths_of_its_life() {
    let one = token(SUBJECT, "u1", 1_000, 500);
    assert!(one.is_of(&argocd()) && !token("system:serviceaccount:argocd:other", "u1", 0, 9).is_of(&argocd()));
    assert_eq!((one.serves("u1", 1_399), one.serves("u1", 1_400)), (Some(1), None), "of 500 s, 400");
    assert_eq!(one.serves("u2", 1_001), None, "of another account of that name");
    assert!(one.lives("u1", 1_499) && !one.lives("u1", 1_500) && !one.lives("u2", 1_001));
    assert!(!one.is_near_its_end(1_450) && one.is_near_its_end(1_451));
    assert!(token("s", "u1", 1_001, 9).is_newer_than(&one));
}

#[test]
fn what_nobody_would_have_issued_here_is_not_plausible() {
    let is_plausible =
        |subject: &str, issued: i64, life: i64| token(subject, "u1", issued, life).is_plausible(&argocd(), 1_000_000);
    assert!(is_plausible(SUBJECT, 1_000_000, LIFE) && is_plausible(SUBJECT, 1_000_060, 600));
    assert!(!is_plausible(SUBJECT, 1_000_061, 600), "it is issued in the future");
    assert!(!is_plausible(SUBJECT, 1_000_000, LIFE + 1), "nobody asks for so long a life");
    assert!(!is_plausible("system:serviceaccount:argocd:other", 1_000_000, 600));
}

#[tokio::test(start_paused = true)]
async fn a_token_of_the_hubs_is_taken_from_secrets_and_a_forged_one_is_not() {
    let seconds = now_seconds();
    let (issued, forged) = (token(SUBJECT, "u1", seconds - 900, LIFE), token(SUBJECT, "u1", seconds - 60, LIFE));
    let place = Place::new(&[&issued]);
    place.issuer.lock().known.insert(text(&issued));
    place.keep(Some("u1"), Duration::from_mins(5)).await;
    assert_eq!((place.text(), place.issuer.lock().issued), (Some(text(&issued)), 0), "a restart asks for none");

    let place = Place::new(&[&issued, &forged]);
    place.keep(Some("u1"), Duration::from_mins(5)).await;
    assert!(place.text().is_some() && place.text() != Some(text(&forged)), "what nobody issued is used");
    assert_eq!(place.issuer.lock().issued, 1);
    // A token that appears in a Secret later is not used.
    put(&place.inventory, 1, &token(SUBJECT, "u1", seconds + 30, LIFE));
    let before = place.text();
    place.keep(Some("u1"), Duration::from_mins(5)).await;
    assert_eq!((place.text(), place.issuer.lock().issued), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn the_old_token_stays_until_there_is_another() {
    // Due for an hour, and valid for some more.
    let old = token(SUBJECT, "u1", now_seconds() - 21 * 3600, LIFE);
    let place = Place::new(&[&old]);
    place.issuer.lock().known.insert(text(&old));
    place.issuer.lock().fails = true;
    let (began, tries) = (Instant::now(), || place.metrics.argocd.token_overdue.get());
    place.keep(Some("u1"), Duration::from_mins(5)).await;
    assert_eq!((place.text(), tries()), (Some(text(&old)), 1), "new clusters get no Secret meanwhile");
    assert!(began.elapsed() >= Duration::from_mins(5));
    place.issuer.lock().fails = false;
    place.keep(Some("u1"), Duration::from_mins(6)).await;
    assert_eq!((place.issuer.lock().issued, tries()), (1, 0));
    assert_ne!(place.text(), Some(text(&old)));
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account_and_its_life() {
    let seconds = now_seconds();
    for (old, uid) in [
        (token(SUBJECT, "u1", seconds, LIFE), None),
        (token(SUBJECT, "u1", seconds, LIFE), Some("u2")),
        (token(SUBJECT, "u1", seconds - 700, 600), Some("u1")),
    ] {
        let place = Place::new(&[]);
        place.issuer.lock().fails = true;
        place.inventory.put_token(old);
        place.keep(uid, Duration::from_mins(1)).await;
        assert_eq!((place.text(), place.metrics.argocd.token_overdue.get()), (None, 1), "{uid:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_stumbles_at_the_start_costs_no_token() {
    let known = of_account("u1");
    let place = Place::new(&[&known]);
    place.issuer.lock().known.insert(text(&known));
    place.issuer.lock().failing_reviews = REVIEWS - 1;
    place.keep(Some("u1"), Duration::from_secs(30)).await;
    assert_eq!((place.text(), place.issuer.lock().issued), (Some(text(&known)), 0));
    let place = Place::new(&[&known]);
    place.issuer.lock().failing_reviews = REVIEWS;
    place.keep(Some("u1"), Duration::from_secs(30)).await;
    assert_eq!(place.issuer.lock().issued, 1, "it does not wait for ever");
}
