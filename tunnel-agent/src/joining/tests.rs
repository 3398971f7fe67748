mod again;
mod filling;
mod stub;

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use kit::wait::eventually;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use time::{Duration as Span, OffsetDateTime};

use self::stub::{CLUSTER, Stub, contents, is_agents, is_bootstraps};
use super::request::{Pending, REQUESTS};
use super::*;
use crate::args::SecretName;

const SOON: Duration = Duration::from_secs(30);

fn hour() -> (Span, Span) {
    (Span::minutes(-1), Span::hours(1))
}

/// A kubeconfig of a member.
pub fn insecure(member: &FakeMember) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": member.url(), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "it", "user": {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
    .to_string()
}

/// Only the agent itself knows of a request whose answer was lost.
#[tokio::test]
async fn a_request_whose_answer_is_lost_is_found_again_and_no_second_one_is_made() {
    let stub = Stub::start().await;
    stub.fault(|request| {
        (request.method == Method::POST && request.path() == REQUESTS).then(|| {
            let (sender, reply) = Reply::stream(201, &[]);
            tokio::spawn(sender.abort());
            reply
        })
    });
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    // Neither its next attempt nor the next process creates a second one.
    agent.kill().await;
    let _agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.state().request().unwrap().is_some()).await;
    stub.issue(hour().0, hour().1);
    eventually(SOON, || stub.path("state/tls.crt").exists()).await;
    let asked = stub.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].starts_with("c1-"), "{asked:?}");
}

/// The state to keep is in the Secret.
#[tokio::test]
async fn a_directory_for_one_run_goes_with_it() {
    let stub = Stub::start().await;
    let agent = Stub::run_with(JoinConfig {
        bootstrap: stub.kubeconfig("bootstrap"),
        state_dir: stub.path("state"),
        is_for_one_run: true,
        state_secret: None,
        member: Member::Unknown,
        credential: None,
        member_url: None,
    });
    eventually(SOON, || stub.path("state/request-key").exists()).await;
    agent.kill().await;
    assert!(!stub.path("state").exists());
}

/// Any number of agents may be started for a cluster without an approval.
#[tokio::test]
async fn no_first_request_is_made_beside_ten_that_wait() {
    let stub = Stub::start().await;
    let looks = Arc::new(AtomicUsize::new(0));
    let waits = |count: usize| {
        let looks = Arc::clone(&looks);
        move |request: &Recorded| {
            let is_list = request.method == Method::GET && request.path() == REQUESTS;
            is_list.then(|| {
                looks.fetch_add(1, Ordering::Relaxed);
                Reply::json(200, &json!({"items": vec![json!({"status": {}}); count]}))
            })
        }
    };
    stub.fault(waits(10));
    let _agent = stub.run(Member::Unknown, None);
    eventually(SOON, || looks.load(Ordering::Relaxed) >= 2).await;
    assert_eq!(stub.asked(), Vec::<String>::new());
    stub.fault(waits(9));
    eventually(SOON, || stub.asked().len() == 1).await;
}

/// A deleted request is created again under its name, with its key.
#[tokio::test]
async fn a_request_that_is_gone_is_the_same_when_it_is_made_again() {
    let stub = Stub::start().await;
    let _agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    let key = contents(&stub.path("state/request-key"));
    stub.set_status(&stub.asked()[0], None);
    eventually(SOON, || stub.asked().len() == 2).await;
    assert_eq!(stub.asked()[0], stub.asked()[1]);
    assert_eq!(contents(&stub.path("state/request-key")), key);
}

#[tokio::test]
async fn what_hangs_at_the_member_or_at_the_hub_stops_neither_the_lease_nor_the_renewal() {
    let stub = Stub::start().await;
    // A certificate of one hour of which nine tenths are over.
    stub.joined_before(Span::minutes(-54), Span::minutes(6)).await;
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::Never);
    std::fs::write(stub.path("member"), insecure(&member)).unwrap();
    let agent = stub.run(Member::Kubeconfig(stub.path("member")), None);
    eventually(SOON, || member.request_count() > 0).await;
    // From now on, requests about the cluster's status get no answer, either.
    let before = stub.lease_renewals();
    stub.fault(|request| (request.method == Method::PATCH).then_some(Reply::Never));
    eventually(Duration::from_secs(10), || stub.lease_renewals() >= before + 4).await;
    eventually(Duration::from_secs(10), || stub.asked().len() == 1).await;
    let old = contents(&stub.path("state/tls.crt"));
    stub.issue(hour().0, hour().1);
    eventually(Duration::from_secs(20), || contents(&stub.path("state/tls.crt")) != old).await;
    assert_eq!(agent.metric("tunnel_agent_joins_again_total{reason=\"expired\"}"), 0);
}

#[tokio::test]
async fn a_hub_that_does_not_know_the_certificate_is_joined_again() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    stub.fault(|request| is_agents(request).then(|| Reply::status(401, "Unauthorized")));
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    assert_eq!(agent.metric("tunnel_agent_joins_again_total{reason=\"unauthorized\"}"), 1);
    let old = contents(&stub.path("state/tls.crt"));
    assert!(!old.is_empty(), "it stays until there is another");
    stub.issue(hour().0, hour().1);
    eventually(SOON, || contents(&stub.path("state/tls.crt")) != old).await;
    stub.no_fault();
    eventually(SOON, || agent.metrics.accepted.get() == 1).await;
}

#[tokio::test]
async fn a_certificate_that_the_hub_knows_again_is_gone_on_with() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    stub.fault(|request| is_agents(request).then(|| Reply::status(401, "Unauthorized")));
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    let before = stub.lease_renewals();
    stub.no_fault();
    eventually(SOON, || stub.lease_renewals() > before && agent.metrics.accepted.get() == 1).await;
    assert!(stub.state().request().unwrap().is_none(), "a renewal would wait for a person");
}

/// Silence and failures say nothing about the certificate.
#[tokio::test]
async fn a_hub_that_is_away_is_waited_for() {
    let stub = Stub::start().await;
    stub.joined_before(hour().0, hour().1).await;
    stub.fault(|request| is_agents(request).then(|| Reply::status(503, "no")));
    let agent = stub.run(Member::Unknown, None);
    // Several times the pace of this test.
    tokio::time::timeout(Duration::from_secs(3), eventually(SOON, || !stub.asked().is_empty())).await.unwrap_err();
    stub.no_fault();
    eventually(SOON, || agent.metrics.accepted.get() == 1).await;
}

#[tokio::test]
async fn a_renewal_that_is_refused_is_told_until_another_is_granted() {
    let stub = Stub::start().await;
    stub.joined_before(Span::minutes(-54), Span::minutes(6)).await;
    stub.fault(|request| {
        (is_bootstraps(request) && request.method == Method::POST).then(|| Reply::status(403, "not by this"))
    });
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    let denied = json!({"conditions": [{"type": "Denied", "message": "who is this?"}]});
    stub.set_status(&stub.asked()[0], Some(denied));
    eventually(SOON, || agent.metric("tunnel_agent_renewal_refused") == 1).await;
    let told = agent.standing.certificate_trouble().unwrap();
    assert!(told.contains("who is this?") && told.contains("it is valid until 20"), "{told}");
    assert_eq!(stub.asked().len(), 1, "nobody is asked again who has said no");
}

/// A certificate that is valid for a second would be renewed each second.
#[tokio::test]
async fn a_certificate_that_ends_at_once_is_no_storm() {
    let stub = Stub::start().await;
    stub.joined_before(Span::minutes(-54), Span::minutes(6)).await;
    let agent = stub.run(Member::Unknown, None);
    eventually(SOON, || stub.asked().len() == 1).await;
    stub.issue(Span::minutes(-5), Span::seconds(2));
    eventually(SOON, || stub.state().request().unwrap().is_none()).await;
    let more = eventually(SOON, || stub.asked().len() > 1);
    tokio::time::timeout(Duration::from_secs(8), more).await.unwrap_err();
    assert_eq!(agent.metric("tunnel_agent_joins_again_total{reason=\"expired\"}"), 0, "the old one is still good");
    let kept = stub.state().certificate(CLUSTER).unwrap().unwrap();
    assert!(!kept.is_over_at(SystemTime::now() + Duration::from_mins(1)));
}
