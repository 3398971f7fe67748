//! Readers' answers when the hub fails: the hub's own code and reason, or what the operator has to
//! do.

use kit::hub::{Call, Fault};
use system_tests::{Http, across_http};

use super::{CLUSTERS, Fixture, SECRETS, Watch, readable};

across_http!(the_hubs_failures_keep_their_code_and_reason);

async fn the_hubs_failures_keep_their_code_and_reason(http: Http) {
    let fixture = Fixture::set([readable("a")]).await;
    let mut connection = fixture.connect(http).await;
    for (code, reason) in [
        (410, "Expired"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ] {
        for (call, target) in [
            (Call::List(SECRETS), CLUSTERS.to_owned()),
            (Call::Get(SECRETS), format!("{CLUSTERS}/a")),
            (Call::Watch(SECRETS), format!("{CLUSTERS}?watch=true")),
        ] {
            fixture.hub.fail_next(call, 1, Fault::Status(code));
            let message = connection.get(&target).await.status_message(code, reason);
            assert_eq!(message, "the test says so", "{target}");
        }
    }
}

across_http!(clients_of_a_busy_hub_are_told_when_to_come_again);

async fn clients_of_a_busy_hub_are_told_when_to_come_again(http: Http) {
    let fixture = Fixture::set([readable("a")]).await;
    let mut connection = fixture.connect(http).await;
    for (call, target) in [
        (Call::List(SECRETS), CLUSTERS.to_owned()),
        (Call::Get(SECRETS), format!("{CLUSTERS}/a")),
        (Call::Watch(SECRETS), format!("{CLUSTERS}?watch=true")),
    ] {
        fixture.hub.fail_next(call, 1, Fault::Busy(7));
        let answer = connection.get(&target).await;
        answer.status_message(429, "TooManyRequests");
        // Clients wait by the header alone.
        assert_eq!(answer.header("retry-after"), Some("7"), "{target}");
        assert_eq!(answer.json()["details"]["retryAfterSeconds"], 7, "{target}");
    }
}

#[tokio::test]
async fn missing_rights_of_the_gateway_are_told_as_such() {
    let fixture = Fixture::set([readable("a")]).await;
    for (call, target, verb) in [
        (Call::List(SECRETS), CLUSTERS.to_owned(), "list"),
        (Call::Get(SECRETS), format!("{CLUSTERS}/a"), "get"),
        (Call::Watch(SECRETS), format!("{CLUSTERS}?watch=true"), "watch"),
    ] {
        fixture.hub.fail_next(call, 1, Fault::Status(403));
        let message = fixture.get(&target).await.status_message(500, "InternalError");
        assert!(message.contains(&format!("grant its ServiceAccount {verb} on secrets")), "{message}");
        fixture.hub.fail_next(call, 1, Fault::Status(401));
        let message = fixture.get(&target).await.status_message(500, "InternalError");
        assert!(message.contains("credential"), "{message}");
    }
}

#[tokio::test]
async fn nonsense_and_silence_of_the_hub_are_errors() {
    let fixture = Fixture::set([readable("a")]).await;
    fixture.hub.fail_next(Call::List(SECRETS), 1, Fault::Garbage);
    fixture.get(CLUSTERS).await.status_message(500, "InternalError");
    fixture.hub.fail_next(Call::Get(SECRETS), 1, Fault::Garbage);
    fixture.get(&format!("{CLUSTERS}/a")).await.status_message(500, "InternalError");
    // The line has no end.
    fixture.hub.fail_next(Call::Watch(SECRETS), 1, Fault::Garbage);
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn events_have_a_longest_length() {
    let fixture = Fixture::set([]).await;
    fixture.hub.watching(SECRETS, 1).await;
    let mut watch = Watch::open(fixture.connect(Http::H2).await, &format!("{CLUSTERS}?watch=true")).await;
    fixture.hub.watching(SECRETS, 2).await;
    fixture.hub.put_secret(readable("a").data("large", vec![0; 2 << 20]));
    let error = watch.next().await.expect("an event");
    assert_eq!((error.kind.as_str(), &error.object["code"]), ("ERROR", &500.into()));
    assert_eq!(watch.next().await, None);
}
