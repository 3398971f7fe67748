use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use parking_lot::Mutex;
use tokio::time::advance;
use tunnel::ClusterName;
use tunnel::register::Registration;

use super::*;
use crate::registry::Credential;

const RECHECK: Duration = Duration::from_secs(30);

/// A hub that can stop answering, forget a token, give it to another user, or withdraw a
/// permission.
struct Hub(Mutex<State>);

struct State {
    user: Option<&'static str>,
    allowed: bool,
    failing: bool,
    asked: VecDeque<SubjectAccessReviewSpec>,
}

struct Fixture {
    hub: Arc<Hub>,
    judge: Judge,
    claim: Claim,
    named: Named,
    sure: Instant,
}

fn failure() -> auth::ReviewError {
    auth::ReviewError::Hub { message: "no etcd".into(), retry: auth::Retry::Never }
}

impl auth::Reviews for Hub {
    fn token_review(&self, _: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, auth::ReviewError>> {
        let state = self.0.lock();
        let user = state.user.map(|name| UserInfo { username: Some(name.to_owned()), ..UserInfo::default() });
        let status = TokenReviewStatus { authenticated: Some(user.is_some()), user, ..TokenReviewStatus::default() };
        let outcome = if state.failing { Err(failure()) } else { Ok(status) };
        Box::pin(async { outcome })
    }

    fn subject_access_review(
        &self,
        spec: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, auth::ReviewError>> {
        let mut state = self.0.lock();
        state.asked.push_back(spec);
        let status = SubjectAccessReviewStatus { allowed: state.allowed, ..SubjectAccessReviewStatus::default() };
        let outcome = if state.failing { Err(failure()) } else { Ok(status) };
        Box::pin(async { outcome })
    }
}

impl Fixture {
    fn new() -> Self {
        let state = State { user: Some("agent"), allowed: true, failing: false, asked: VecDeque::new() };
        let hub = Arc::new(Hub(Mutex::new(state)));
        let judge = Judge::with_reviews(RECHECK, Arc::<Hub>::clone(&hub));
        let cluster = ClusterName::parse("east").unwrap();
        let registration = Registration { cluster, agent: "a".to_owned(), link: 0, version: "1".to_owned() };
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer canary"));
        headers.insert("impersonate-user", HeaderValue::from_static("admin"));
        headers.insert("x-remote-user", HeaderValue::from_static("admin"));
        let address = SocketAddr::from(([192, 0, 2, 1], 1));
        let claim = Claim::new(registration.clone(), &headers, address, Vec::new());
        let named = Named::new(&registration, address, Credential("agent".into()));
        Self { hub, judge, claim, named, sure: Instant::now() }
    }

    /// The next recheck.
    async fn look(&mut self) -> Option<Ended> {
        advance(RECHECK).await;
        judge_again(&self.judge, &self.claim, &self.named, None, &mut self.sure).await.map(|(ended, _)| ended)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.hub.0.lock());
    }
}

#[tokio::test(start_paused = true)]
async fn a_good_credential_stays_good_and_is_asked_about_each_time() {
    let mut fixture = Fixture::new();
    for _ in 0..5 {
        assert_eq!(fixture.look().await, None);
    }
    let asked = std::mem::take(&mut fixture.hub.0.lock().asked);
    assert_eq!(asked.len(), 5);
    let attributes = asked[0].resource_attributes.as_ref().unwrap();
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    assert_eq!(asked[0].user.as_deref(), Some("agent"), "nobody says who it is but its token");
    assert_eq!(
        [&attributes.verb, &attributes.group, &attributes.resource, &attributes.subresource, &attributes.name].map(of),
        ["create", "cluster.core.oam.dev", "clustergateways", "tunnel", "east"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_revoked_permission_a_dead_token_and_another_user_end_the_link() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.look().await, None);
    fixture.set(|hub| hub.allowed = false);
    assert_eq!(fixture.look().await, Some(Ended::Revoked));
    fixture.set(|hub| (hub.allowed, hub.user) = (true, None));
    assert_eq!(fixture.look().await, Some(Ended::Revoked));
    fixture.set(|hub| hub.user = Some("somebody else"));
    assert_eq!(fixture.look().await, Some(Ended::Revoked));
    fixture.set(|hub| hub.user = Some("agent"));
    assert_eq!(fixture.look().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_hub_is_survived_for_a_while_and_not_for_ever() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.look().await, None);
    fixture.set(|hub| hub.failing = true);
    let started = Instant::now();
    let ended = loop {
        if let Some(ended) = fixture.look().await {
            break ended;
        }
    };
    assert_eq!(ended, Ended::Unreviewed);
    assert!(
        started.elapsed() >= UNREVIEWED && started.elapsed() <= UNREVIEWED + 2 * RECHECK,
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_an_outage_starts_anew_when_the_hub_answers() {
    let mut fixture = Fixture::new();
    for _ in 0..3 {
        fixture.set(|hub| hub.failing = true);
        for _ in 0..15 {
            assert_eq!(fixture.look().await, None);
        }
        fixture.set(|hub| hub.failing = false);
        assert_eq!(fixture.look().await, None);
    }
}
