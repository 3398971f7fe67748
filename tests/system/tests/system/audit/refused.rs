//! Refused requests are in the log too: they are half of its purpose.

use kit::hub::{Decision, FakeHub, TokenUser};
use serde_json::{Value, json};
use system_tests::{CLUSTER, Http, Testbed, VIEWER, cluster, proxied};

use super::{Log, POD, member};

#[tokio::test]
async fn strangers_and_the_forbidden_are_named_as_far_as_they_are_known() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let target = proxied(CLUSTER, POD);
    let unknown = testbed.anonymous(Http::H2).await.bearer("no-such-token").get(&target).await;
    let anonymous = testbed.anonymous(Http::H2).await.get(&target).await;
    let mut viewer = testbed.anonymous(Http::H2).await.bearer(VIEWER);
    let forbidden = viewer.call("DELETE", &target, &[], b"").await;
    let nowhere = viewer.get(&proxied("nowhere", POD)).await;
    let climbing = viewer.get(&proxied(CLUSTER, "/api/../x")).await;
    testbed.stop().await;
    assert_eq!(member.request_count(), 0);

    let events = log.events();
    let code = |event: &Value| event["responseStatus"]["code"].clone();
    assert_eq!(events.iter().map(code).collect::<Vec<_>>(), [401, 403, 403, 404, 400]);
    let answers = [&unknown, &anonymous, &forbidden, &nowhere, &climbing];
    for (event, answer) in events.iter().zip(answers) {
        assert_eq!(answer.header("audit-id"), event["auditID"].as_str(), "{event}");
    }
    let decision = |number: usize| &events[number]["annotations"]["authorization.k8s.io/decision"];
    assert_eq!((&events[0]["user"], decision(0)), (&json!({}), &Value::Null));
    assert_eq!((&events[1]["user"]["username"], decision(1)), (&json!("system:anonymous"), &json!("forbid")));
    assert_eq!((&events[2]["user"]["username"], decision(2)), (&json!("viewer"), &json!("forbid")));
    assert_eq!(events[2]["verb"], "delete");
    assert_eq!(decision(3), "allow");
    assert_eq!(events[3]["annotations"]["cluster.core.oam.dev/cluster"], "nowhere");
    assert_eq!(events[4]["objectRef"]["resource"], "clustergateways", "it is nothing on the member");
    assert!(events.iter().all(|event| event["annotations"]["cluster.core.oam.dev/side"] == "caller"), "{events:?}");
}

/// The table of headers holds 24,576 names, and the id would be one more.
#[tokio::test]
async fn a_head_with_no_room_for_an_id_is_refused_and_written_down() {
    const FULL: u32 = 24_576;
    const AROUND: std::ops::RangeInclusive<u32> = FULL - 2..=FULL;
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let digit = |number: u32| char::from_digit(number % 36, 36).expect("less than 36");
    let name = |number: u32| format!("q{}{}{}", digit(number / 1296), digit(number / 36), digit(number));
    let names: Vec<String> = (0..FULL).map(name).collect();
    for count in AROUND {
        // Without a token: the one that any other header would be.
        let mut connection = testbed.anonymous(Http::H2).await;
        let headers: Vec<_> = names.iter().take(count as usize).map(|name| (name.as_str(), "")).collect();
        let answer = connection.try_call("GET", &proxied(CLUSTER, POD), &headers, b"").await.expect("an answer");
        assert_eq!(answer.status, 431, "{count}");
        assert_eq!(testbed.anonymous(Http::H2).await.get("/livez").await.status, 200);
    }
    testbed.stop().await;
    let codes: Vec<_> = log.events().iter().map(|event| event["responseStatus"]["code"].clone()).collect();
    assert_eq!(codes, AROUND.map(|_| json!(431)).collect::<Vec<_>>());
    assert_eq!(member.request_count(), 0);
}

#[tokio::test]
async fn who_acts_as_another_is_named_beside_the_other() {
    let (log, member, hub) = (Log::new(), member().await, FakeHub::start().await);
    hub.put_secret(cluster(CLUSTER, &member));
    hub.add_token("alices", TokenUser::new("alice", &["staff"]));
    hub.on_access(|spec| {
        let to_mallory = spec["resourceAttributes"]["name"] == "mallory";
        if to_mallory { Decision::no_opinion("not her") } else { Decision::allow() }
    });
    let testbed = log.written_by(Testbed::builder().hub(&hub)).start().await;
    let mut alice = testbed.anonymous(Http::H2).await.bearer("alices");
    for (name, code) in [("bob", 200), ("mallory", 403)] {
        let answer = alice.call("GET", &proxied(CLUSTER, POD), &[("impersonate-user", name)], b"").await;
        assert_eq!(answer.status, code, "{}", answer.text());
    }
    testbed.stop().await;
    let [bob, mallory] = log.events().try_into().expect("two events");
    assert_eq!((&bob["user"]["username"], &bob["impersonatedUser"]["username"]), (&json!("alice"), &json!("bob")));
    assert_eq!((&mallory["user"]["username"], mallory.get("impersonatedUser")), (&json!("alice"), None));
    let annotations = &mallory["annotations"];
    assert_eq!(annotations["authorization.k8s.io/decision"], "forbid");
    assert_eq!(annotations["authorization.k8s.io/reason"], "not her");
}
