//! Requests to members without any user's request, and where their answer is to be found.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use system_tests::TestbedBuilder;
use system_tests::prelude::*;
use tokio::time::Duration;

const HEALTHY: &str = "status.cluster.core.oam.dev/healthy";
const REASON: &str = "status.cluster.core.oam.dev/healthy-reason";

/// A gateway that asks all the time.
fn probing(hub: &FakeHub) -> TestbedBuilder {
    Testbed::builder().hub(hub).arg("--health-probe-interval=20ms")
}

fn secret(hub: &FakeHub, name: &str) -> Value {
    hub.get(Resource::Secrets, "vela-system", name).expect("the Secret is there")
}

/// The two annotations of a cluster's Secret.
fn health(hub: &FakeHub, name: &str) -> [Option<String>; 2] {
    let secret = secret(hub, name);
    [HEALTHY, REASON].map(|key| secret["metadata"]["annotations"][key].as_str().map(str::to_owned))
}

async fn until(hub: &FakeHub, name: &str, healthy: &str) -> String {
    let seen = async {
        let mut interval = tokio::time::interval(Duration::from_millis(5));
        loop {
            interval.tick().await;
            if let [Some(value), reason] = health(hub, name)
                && value == healthy
            {
                return reason.unwrap_or_default();
            }
        }
    };
    within(WAIT, format_args!("{name} to be written as healthy: {healthy}"), seen).await
}

async fn member(answer: impl Fn() -> Reply + Send + Sync + 'static) -> FakeMember {
    speaking(&["h2", "http/1.1"], answer).await
}

async fn speaking(alpn: &'static [&'static str], answer: impl Fn() -> Reply + Send + Sync + 'static) -> FakeMember {
    let member = FakeMember::start(MemberOptions { alpn, ..MemberOptions::default() }).await;
    member.on_any(move |request| {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/healthz"));
        answer()
    });
    member
}

#[tokio::test]
async fn what_members_answer_is_written_into_their_secrets_when_it_changes() {
    let hub = FakeHub::start().await;
    let status = Arc::new(AtomicU16::new(200));
    let answered = Arc::clone(&status);
    let member = member(move || match answered.load(Ordering::SeqCst) {
        200 => Reply::full(200, &[], "ok"),
        status => Reply::full(status, &[], "[-]etcd failed"),
    })
    .await;
    hub.put_secret(cluster(CLUSTER, &member).annotation("kept", "as it is"));
    let testbed = probing(&hub).start().await;
    assert_eq!(until(&hub, CLUSTER, "true").await, "");
    let request = member.requests().into_iter().next().expect("it was asked");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {MEMBER_TOKEN}").as_str()));

    status.store(500, Ordering::SeqCst);
    let reason = until(&hub, CLUSTER, "false").await;
    assert_eq!(reason, "Unknown: /healthz answers 500 Internal Server Error");
    let written = secret(&hub, CLUSTER);
    assert_eq!(written["metadata"]["annotations"]["kept"], "as it is");

    // The same finding again is no news.
    let (asked, updates) = (member.request_count(), hub.calls(Call::Write(Resource::Secrets)));
    eventually(WAIT, || member.request_count() >= asked + 5).await;
    assert_eq!(hub.calls(Call::Write(Resource::Secrets)), updates);

    status.store(200, Ordering::SeqCst);
    assert_eq!(until(&hub, CLUSTER, "true").await, "");
    testbed.stop().await;
}

/// A probe has the cluster's credential.
#[tokio::test]
async fn a_redirect_is_not_healthy_and_not_followed() {
    let (hub, elsewhere) = (FakeHub::start().await, Http::H2.member().await);
    let location = elsewhere.url() + "/healthz";
    let member = member(move || Reply::full(302, &[("location", &location)], "ok")).await;
    hub.put_secret(cluster(CLUSTER, &member));
    let _testbed = probing(&hub).start().await;
    assert_eq!(until(&hub, CLUSTER, "false").await, "Unknown: /healthz answers 302 Found");
    assert_eq!(elsewhere.connections_accepted(), 0);
}

#[tokio::test]
async fn members_are_asked_in_whichever_protocol_they_speak() {
    let hub = FakeHub::start().await;
    let (old, new) =
        (speaking(&["http/1.1"], || Reply::full(200, &[], "ok")), speaking(&["h2"], || Reply::full(200, &[], "ok")));
    let (old, new) = (old.await, new.await);
    hub.put_secret(cluster("old", &old));
    hub.put_secret(cluster("new", &new));
    let _rig = probing(&hub).start().await;
    until(&hub, "old", "true").await;
    until(&hub, "new", "true").await;
}

#[tokio::test]
async fn one_bad_answer_of_a_healthy_member_is_not_written() {
    let hub = FakeHub::start().await;
    let bad = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&bad);
    let member = member(move || {
        let bad = once.swap(false, Ordering::SeqCst);
        if bad { Reply::full(503, &[], "a moment") } else { Reply::full(200, &[], "ok") }
    })
    .await;
    hub.put_secret(cluster(CLUSTER, &member));
    let _rig = probing(&hub).start().await;
    until(&hub, CLUSTER, "true").await;
    let (asked, updates) = (member.request_count(), hub.calls(Call::Write(Resource::Secrets)));
    bad.store(true, Ordering::SeqCst);
    eventually(WAIT, || member.request_count() >= asked + 5).await;
    assert!(!bad.load(Ordering::SeqCst), "it answered badly once");
    assert_eq!(hub.calls(Call::Write(Resource::Secrets)), updates);
}

#[tokio::test]
async fn members_that_are_away_or_not_who_they_should_be_hold_up_nobody() {
    let hub = FakeHub::start().await;
    let (good, other) = (member(|| Reply::full(200, &[], "ok")).await, member(|| Reply::full(200, &[], "ok")).await);
    let silent = kit::member::BlackHole::start().await;
    let secret = |name: &str, url: &str, ca: &str| {
        ClusterSecret::new("vela-system", name).endpoint(url).ca(ca).token(MEMBER_TOKEN)
    };
    hub.put_secret(secret("silent", &format!("https://{}", silent.address()), &other.ca_pem()));
    hub.put_secret(secret("stranger", &other.url(), &good.ca_pem()));
    hub.put_secret(cluster("well", &good));
    // Long enough for a slow machine to verify the others' certificates.
    let _rig = probing(&hub).arg("--health-probe-timeout=2s").start().await;
    assert_eq!(until(&hub, "well", "true").await, "");
    assert_eq!(until(&hub, "silent", "false").await, "ConnectionTimeout");
    assert_eq!(until(&hub, "stranger", "false").await, "CertificateMismatch: unknown issuer");
}

#[tokio::test]
async fn what_stays_as_bad_as_it_was_is_written_once() {
    let hub = FakeHub::start().await;
    // Verifiers say since how many seconds it has expired.
    let serving = Leaf::server("kube-apiserver").expired();
    let expired = FakeMember::start(MemberOptions { serving, ..MemberOptions::default() }).await;
    hub.put_secret(cluster(CLUSTER, &expired));
    // Its circuit stays closed: every probe finds out by itself.
    let _rig = probing(&hub).arg("--circuit-failures=0").start().await;
    assert_eq!(until(&hub, CLUSTER, "false").await, "CertificateMismatch: expired");
    let (updates, dials) = (hub.calls(Call::Write(Resource::Secrets)), expired.connections_accepted());
    let clock = Instant::now();
    eventually(WAIT, || clock.elapsed() > Duration::from_millis(1100) && expired.connections_accepted() > dials + 5)
        .await;
    assert_eq!(hub.calls(Call::Write(Resource::Secrets)), updates);
}

#[tokio::test]
async fn a_finding_that_the_hub_did_not_take_is_written_later() {
    let hub = FakeHub::start().await;
    let member = member(|| Reply::full(200, &[], "ok")).await;
    hub.put_secret(cluster(CLUSTER, &member));
    hub.fail_next(Call::Write(Resource::Secrets), 7, Fault::Status(409));
    let _rig = probing(&hub).start().await;
    until(&hub, CLUSTER, "true").await;
    assert!(hub.calls(Call::Write(Resource::Secrets)) >= 8);
}

#[tokio::test]
async fn nobody_is_asked_unless_the_operator_wants_it() {
    let hub = FakeHub::start().await;
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::full(200, &[], "ok"));
    hub.put_secret(cluster(CLUSTER, &member));
    let testbed = Testbed::builder().hub(&hub).start().await;
    testbed.stop().await;
    assert_eq!(member.connections_accepted(), 0);
}
