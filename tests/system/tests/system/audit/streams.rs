//! Long-running requests are written twice: when they have begun, and when they are over.

use system_tests::prelude::*;

use super::{Log, POD, member};

fn summary(event: &Value) -> (&str, u64, &str) {
    let text = |value: &'_ Value| value.as_str().map(ToOwned::to_owned).expect("text");
    let _ = text(&event["auditID"]);
    (
        event["stage"].as_str().expect("a stage"),
        event["responseStatus"]["code"].as_u64().expect("a code"),
        event["verb"].as_str().expect("a verb"),
    )
}

across_http!(a_watch_is_written_at_its_beginning_and_its_end);

async fn a_watch_is_written_at_its_beginning_and_its_end(http: Http) {
    let (log, member) = (Log::new(), member().await);
    let mut streams = member.streams("/api/v1/pods");
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, "/api/v1/pods?watch=true");
    let watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    let begun = log.reaches(1).await;
    assert_eq!(summary(&begun[0]), ("ResponseStarted", 200, "watch"));
    assert!(stream.send("event\n").await);
    drop(stream);
    watch.whole().await.expect("a proper end");
    let events = log.reaches(2).await;
    assert_eq!(summary(&events[1]), ("ResponseComplete", 200, "watch"));
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
    testbed.stop().await;
    assert_eq!(log.events().len(), 2);
}

#[tokio::test]
async fn an_exec_is_written_until_it_is_closed() {
    let (log, member) = (Log::new(), FakeMember::start(Http::H1.member_options()).await);
    member.on_any(|_| Reply::upgrade_echo("websocket"));
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let bearer = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, &format!("{POD}/exec?command=sh"));
    let head = connection.upgrade("GET", &target, "websocket", &[("Authorization", &bearer)]).await.expect("a head");
    assert_eq!(head.status, 101);
    connection.send("ping").await.expect("taken");
    assert_eq!(connection.read_exact(4).await.expect("echoed"), "ping");
    let begun = log.reaches(1).await;
    assert_eq!((begun.len(), summary(&begun[0])), (1, ("ResponseStarted", 101, "create")));
    let object = json!({"resource": "pods", "namespace": "ns", "name": "p", "apiVersion": "v1", "subresource": "exec"});
    assert_eq!(begun[0]["objectRef"], object);
    drop(connection);
    let events = log.reaches(2).await;
    assert_eq!(summary(&events[1]), ("ResponseComplete", 101, "create"));
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
}

#[tokio::test]
async fn a_client_that_leaves_early_is_written_as_gone() {
    let (log, member) = (Log::new(), member().await);
    member.on(POD, |_| Reply::Never);
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, POD);
    {
        let waiting = connection.open("GET", &target, &[]);
        tokio::select! {
            answer = waiting => panic!("answered: {answer:?}"),
            _ = member.next_request() => {}
        }
    }
    drop(connection);
    let events = log.reaches(1).await;
    assert_eq!(summary(&events[0]), ("ResponseComplete", 499, "get"));
}
