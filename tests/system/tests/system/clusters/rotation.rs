//! A Secret is replaced while requests are in flight: every request travels with one generation of
//! it, whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use system_tests::prelude::*;
use tokio::task::JoinSet;

use super::{EFFECTIVE, PATH, is_ok, member, secret};

/// Client connections that send one request after the other.
const CLIENTS: usize = 8;
/// Requests in all, at least.
const REQUESTS: usize = 2_000;
/// Requests that each generation serves at least before the next takes its place.
const EACH: usize = 200;

/// Clients that are busy until they are stopped.
struct Load {
    tasks: JoinSet<()>,
    done: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

// === impl Load ===

impl Load {
    /// Half of the clients speak HTTP/1.1, half HTTP/2; all insist on 200.
    async fn start(testbed: &Testbed) -> Self {
        let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let connection = testbed.connect(if number % 2 == 0 { Http::H1 } else { Http::H2 }).await;
            tasks.spawn(send(connection, done.clone(), stop.clone()));
        }
        Self { tasks, done, stop }
    }

    /// Ends it after [`REQUESTS`].
    async fn finish(mut self) {
        eventually(WAIT, || self.done.load(Ordering::SeqCst) >= REQUESTS).await;
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("every request was answered with 200");
        }
    }
}

async fn send(mut connection: Connection, done: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::SeqCst) {
        let answer = connection.get(&proxied(CLUSTER, PATH)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        done.fetch_add(1, Ordering::SeqCst);
    }
}

across_http!(no_member_sees_the_credential_of_another_and_no_request_fails);

async fn no_member_sees_the_credential_of_another_and_no_request_fails(http: Http) {
    let (a, b) = (member(http.member_options()).await, member(http.member_options()).await);
    let testbed = Testbed::builder().cluster(CLUSTER, secret(&a, "first-of-a")).threads(2).start().await;
    let load = Load::start(&testbed).await;
    for (current, token) in [(&a, None), (&b, Some("of-b")), (&a, Some("second-of-a"))] {
        let before = current.request_count();
        if let Some(token) = token {
            testbed.register(CLUSTER, secret(current, token));
        }
        eventually(WAIT, || current.request_count() >= before + EACH).await;
    }
    load.finish().await;
    assert_credentials(&a, &["Bearer first-of-a", "Bearer second-of-a"]);
    assert_credentials(&b, &["Bearer of-b"]);
}

/// Every one of `expected` was used, in this order, and nothing else.
fn assert_credentials(member: &FakeMember, expected: &[&str]) {
    let mut seen: Vec<String> = member
        .requests()
        .iter()
        .map(|request| request.header("authorization").unwrap_or_default().to_owned())
        .collect();
    assert!(seen.iter().all(|credential| expected.contains(&credential.as_str())), "{:?}", distinct(&seen));
    seen.sort();
    assert_eq!(distinct(&seen), expected);
}

fn distinct(sorted: &[String]) -> Vec<&str> {
    let mut distinct: Vec<&str> = sorted.iter().map(String::as_str).collect();
    distinct.dedup();
    distinct
}

#[tokio::test]
async fn a_new_token_needs_no_new_connection() {
    let member = member(MemberOptions::default()).await;
    let testbed = Testbed::builder().cluster(CLUSTER, secret(&member, "first")).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    testbed.register(CLUSTER, secret(&member, "second"));
    let is_second = || member.requests().last().is_some_and(|one| one.header("authorization") == Some("Bearer second"));
    testbed.until(EFFECTIVE, &target, |_| is_second()).await;
    assert_eq!(member.connections_accepted(), 1);
}

across_http!(a_client_certificate_is_the_credential_alone);

async fn a_client_certificate_is_the_credential_alone(http: Http) {
    let authority = Arc::new(Authority::new("member-client-ca"));
    let options = MemberOptions {
        client_authority: Some(authority.clone()),
        require_client_certificate: true,
        ..http.member_options()
    };
    let member = member(options).await;
    let identity = |name: &str| authority.issue(&Leaf::client(name).group("gateways"));
    let secret = |name: &str| {
        let secret = cluster(CLUSTER, &member);
        // The token of the Secret stays where it is: the type decides.
        secret.certificate(&identity(name))
    };
    let testbed = Testbed::builder().cluster(CLUSTER, secret("first")).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    let request = member.next_request().await;
    let peer = request.peer.as_ref().expect("the member requires a certificate");
    assert_eq!((peer.common_name.as_str(), &peer.organisations[..]), ("first", &["gateways".to_owned()][..]));
    assert_eq!(request.header("authorization"), None);

    // A new certificate takes a new connection: the old one keeps speaking for the old identity.
    testbed.register(CLUSTER, secret("second"));
    testbed.until(EFFECTIVE, &target, |_| common_name(&member) == "second").await;
    assert_eq!(member.connections_accepted(), 2);
    testbed.until(EFFECTIVE, &target, |answer| is_ok(answer) && member.connections_open() == 1).await;
}

/// The certificate of the latest request's connection.
fn common_name(member: &FakeMember) -> String {
    let latest = member.requests().pop().expect("a request was made");
    latest.peer.expect("the member requires a certificate").common_name
}
