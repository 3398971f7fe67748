//! Before it knows its clusters and the hub's CAs, the gateway says that it does not know, and
//! nothing else.

use system_tests::prelude::*;

use super::target;

/// A gateway whose hub does not answer `calls`, of which it makes the first, until the gate opens.
async fn waiting_for(calls: &[Call]) -> (FakeHub, FakeMember, Testbed, Gate) {
    let (hub, member, gate) = (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await, Gate::new());
    member.on_any(|_| Reply::full(200, &[], ""));
    hub.put_secret(cluster(CLUSTER, &member));
    hub.on_access(|spec| if spec["user"] == "alice" { Decision::allow() } else { Decision::no_opinion("") });
    for call in calls {
        hub.fail(*call, Fault::Until(gate.clone()));
    }
    let testbed = Testbed::builder().hub(&hub).launch().await;
    hub.called(calls[0], 1).await;
    (hub, member, testbed, gate)
}

async fn aggregator(testbed: &Testbed, hub: &FakeHub) -> Connection {
    testbed.aggregator(hub, Http::H2).await.with("x-remote-user", "alice")
}

#[tokio::test]
async fn a_request_before_the_first_list_is_told_to_come_again() {
    let (hub, member, testbed, gate) =
        waiting_for(&[Call::Watch(Resource::Secrets), Call::List(Resource::Secrets)]).await;
    let mut prober = testbed.anonymous(Http::H2).await;
    let answer = prober.until(WAIT, "/readyz?verbose", |answer| !answer.text().contains("[-]identity")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("[-]clusters"), "{}", answer.text());
    // Connections from before the gateway knew the front proxy's CA are closed when it does.
    let mut connection = aggregator(&testbed, &hub).await;
    assert_eq!(connection.get("/livez").await.status, 200);

    let answer = connection.get(&target()).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(!message.contains("no such cluster"), "{message}");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // The hub requests this to find out whether the API is there at all.
    assert_eq!(connection.get("/apis/cluster.core.oam.dev/v1alpha1").await.status, 200);

    gate.open();
    connection.until(WAIT, "/readyz", |answer| answer.status == 200).await;
    assert_eq!(connection.get(&target()).await.status, 200);
    assert_eq!(member.request_count(), 1);
}

#[tokio::test]
async fn it_is_not_ready_before_it_knows_the_front_proxy() {
    let (hub, member, testbed, gate) = waiting_for(&[Call::List(Resource::ConfigMaps)]).await;
    let mut prober = testbed.anonymous(Http::H2).await;
    let answer = prober.until(WAIT, "/readyz?verbose", |answer| !answer.text().contains("[-]clusters")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("[-]identity"), "{answer:?}");
    let answer = aggregator(&testbed, &hub).await.get(&target()).await;
    assert!(matches!(answer.status, 401 | 403 | 503), "{}", answer.text());
    assert_eq!(member.request_count(), 0);

    gate.open();
    testbed.ready().await;
    assert_eq!(aggregator(&testbed, &hub).await.get(&target()).await.status, 200);
}

#[tokio::test]
async fn a_hub_that_refuses_at_first_is_asked_again() {
    let (hub, member) = (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await);
    member.on_any(|_| Reply::full(200, &[], ""));
    hub.put_secret(cluster(CLUSTER, &member));
    hub.allow_all();
    for call in [Call::Watch(Resource::Secrets), Call::List(Resource::Secrets)] {
        hub.fail_next(call, 1, Fault::Status(503));
    }
    hub.fail_next(Call::List(Resource::ConfigMaps), 1, Fault::Garbage);
    let testbed = Testbed::builder().hub(&hub).start().await;
    assert_eq!(aggregator(&testbed, &hub).await.get(&target()).await.status, 200);
}

/// The hubs that do not know lists as events refuse the parameters.
#[tokio::test]
async fn a_hub_that_sends_no_list_as_events_is_asked_for_pages() {
    let (hub, member) = (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await);
    member.on_any(|_| Reply::full(200, &[], ""));
    hub.put_secret(cluster(CLUSTER, &member));
    hub.allow_all();
    hub.fail_next(Call::Watch(Resource::Secrets), 1, Fault::Status(422));
    let testbed = Testbed::builder().hub(&hub).start().await;
    assert_eq!(aggregator(&testbed, &hub).await.get(&target()).await.status, 200);
    let pages = |request: &&String| request.contains("/secrets?") && request.contains("limit=25");
    assert_eq!(hub.requests().iter().filter(pages).count(), 1);
}
