//! A member that answers 401 makes the program run again, and the request goes out once more if it
//! is whole.

use std::sync::atomic::{AtomicUsize, Ordering};

use system_tests::prelude::*;

use super::{PATH, Plugin, assert_runs_now_and_then, seen};

/// A member that knows one of the tokens.
struct Picky {
    member: FakeMember,
    accepts: Arc<AtomicUsize>,
}

// === impl Picky ===

impl Picky {
    async fn start(options: MemberOptions) -> Self {
        let member = FakeMember::start(options).await;
        let accepts = Arc::new(AtomicUsize::new(1));
        let accepted = accepts.clone();
        member.on_any(move |request| {
            let expected = format!("Bearer token-{}", accepted.load(Ordering::SeqCst));
            match request.header("authorization") == Some(expected.as_str()) {
                true if request.header("upgrade").is_some() => Reply::upgrade_echo("websocket"),
                true => Reply::full(200, &[], ""),
                false => Reply::full(401, &[], "who are you?"),
            }
        });
        Self { member, accepts }
    }

    fn accept(&self, token: usize) {
        self.accepts.store(token, Ordering::SeqCst);
    }
}

/// Such a member that speaks `http`, and a gateway that reaches it with what `plugin` issues.
async fn set(http: Http, plugin: Plugin) -> (Picky, Plugin, Testbed) {
    let picky = Picky::start(http.member_options()).await;
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &picky.member)).start().await;
    (picky, plugin, testbed)
}

across_http!(a_request_without_a_body_is_sent_again_once);

async fn a_request_without_a_body_is_sent_again_once(http: Http) {
    let (picky, plugin, testbed) = set(http, Plugin::tokens("")).await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, "/api/v1/nodes?limit=5");
    assert_eq!(connection.get(&target).await.status, 200);

    picky.accept(2);
    for method in ["GET", "DELETE"] {
        let answer = connection.call(method, &target, &[("x-mine", "stays")], b"").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(seen(&picky.member)[1..], ["Bearer token-1", "Bearer token-2", "Bearer token-2"]);
    assert_eq!(plugin.runs(), 2);
    let requests = picky.member.requests();
    assert!(requests[1..].iter().all(|one| one.query() == Some("limit=5") && one.header("x-mine") == Some("stays")));
}

across_http!(a_request_with_a_body_is_not_sent_again);

async fn a_request_with_a_body_is_not_sent_again(http: Http) {
    let (picky, plugin, testbed) = set(http, Plugin::tokens("")).await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(connection.get(&target).await.status, 200);
    picky.accept(2);
    let answer = connection.call("POST", &target, &[], b"{}").await;
    let message = answer.status_message(502, "InternalError");
    assert!(
        message.starts_with("cluster c1 rejected the credential that its external command issued (401)"),
        "{message}"
    );
    assert_eq!(seen(&picky.member).len(), 2);
    // But the program was asked for another.
    plugin.running(2).await;
    let answer = testbed.until(WAIT, &target, |answer| answer.status == 200).await;
    assert_eq!(answer.status, 200);
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn an_upgrade_is_asked_for_again() {
    let (picky, _plugin, testbed) = set(Http::H1, Plugin::tokens("")).await;
    picky.accept(2);
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101);
    connection.send("there and back").await.expect("the stream is open");
    assert_eq!(connection.read_exact(14).await.expect("the member echoes"), "there and back");
    assert_eq!(seen(&picky.member), ["Bearer token-1", "Bearer token-2"]);
}

#[tokio::test]
async fn a_workload_that_wants_another_credential_has_nothing_issued() {
    let (picky, plugin, testbed) = set(Http::H2, Plugin::tokens("")).await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    picky.accept(0);
    let answer = testbed.get(&proxied(CLUSTER, "/api/v1/namespaces/ns/services/grafana/proxy/")).await;
    assert_eq!((answer.status, answer.text().as_str()), (401, "who are you?"));
    // Neither sent again nor the program's concern.
    assert_eq!((picky.member.request_count(), plugin.runs()), (2, 1));
}

#[tokio::test]
async fn a_crowd_of_rejected_requests_is_one_run() {
    let (picky, plugin, testbed) = set(Http::H2, Plugin::tokens("")).await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    picky.accept(2);
    let connection = testbed.connect(Http::H2).await;
    let asking = (0..50).map(|_| async {
        let answer = connection.open_beside("GET", &target).await.expect("an answer");
        answer.status
    });
    let statuses = futures_util::future::join_all(asking).await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(plugin.runs(), 2);
}

#[tokio::test]
async fn a_member_that_rejects_everything_does_not_have_it_run_each_time() {
    let (picky, plugin, testbed) = set(Http::H2, Plugin::tokens("")).await;
    picky.accept(0);
    let mut connection = testbed.connect(Http::H2).await;
    let started = Instant::now();
    for _ in 0..30 {
        let answer = connection.get(&proxied(CLUSTER, PATH)).await;
        assert!(answer.status_message(502, "InternalError").contains("rejected the credential"), "{}", answer.text());
    }
    assert_runs_now_and_then(&plugin, started);
}

#[tokio::test]
async fn a_program_that_fails_then_is_what_the_caller_learns() {
    let (picky, plugin, testbed) =
        set(Http::H2, Plugin::new(&format!("test $RUN -eq 1 || exit 9\n{}", super::issue("")))).await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    picky.accept(0);
    let message = testbed.get(&target).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("exec: executable sh failed with exit code 9"), "{message}");
    // The last issued credential is still there, in case the member was wrong.
    picky.accept(1);
    assert_eq!(testbed.get(&target).await.status, 200);
    eventually(WAIT, || plugin.runs() == 2).await;
}
