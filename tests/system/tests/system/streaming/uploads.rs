//! Request bodies stream: the member reads while the client still sends, a member that does not
//! read holds the client back, and one that answers early is heard at once.

use kit::member::BodyEnd;
use system_tests::prelude::*;
use system_tests::{Failure, socket_buffers};

use super::AT_ONCE;

across_versions!(a_member_reads_while_the_client_sends, an_unread_upload_is_held_back);
across_dialects!(an_upload_is_held_back, an_early_answer_over_http2_is_relayed_at_once);
across_http!(an_upload_goes_on_when_the_member_reads_again);

/// After this long without room, an upload counts as held back.
const QUIET: Duration = Duration::from_millis(300);
/// Bytes that the gateway's and the member's HTTP/2 windows for one request hold, with room for
/// frames in between.
const WINDOWS: usize = 1 << 20;
/// Bytes that TLS and HTTP/1.1 hold besides the kernel's buffers of one connection.
const BESIDE: usize = 2 << 20;

async fn a_member_reads_while_the_client_sends(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/x", |_| Reply::json(201, &json!({})));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let target = proxied(CLUSTER, "/x");
    let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
    let request = member.next_request().await;
    for number in 1..=5 {
        upload.send("piece").await.expect("taken");
        request.body_reached(number * 5).await;
    }
    assert_eq!(upload.answer().await.expect("an answer").status, 201);
    assert_eq!((request.body_ended().await, request.body_bytes()), (BodyEnd::Complete, 25));
}

async fn an_unread_upload_is_held_back(versions: Versions) {
    held_back(Dialect::Native, versions).await;
}

async fn an_upload_is_held_back(dialect: Dialect) {
    for client in [Http::H1, Http::H2] {
        held_back(dialect, Versions { client, member: Http::H2 }).await;
    }
}

async fn held_back(dialect: Dialect, versions: Versions) {
    let member = versions.member.member().await;
    member.on("/x", |_| Reply::Never);
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.connect(&testbed, versions.client).await.bearer(ADMIN);
    let target = dialect.path("/x");
    let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
    let taken = upload.fill(QUIET).await.expect("open");
    let sockets = [versions.client, versions.member].iter().filter(|http| **http == Http::H1).count();
    let bound = WINDOWS + sockets * (BESIDE + socket_buffers());
    assert!(taken <= bound, "{taken} bytes wait on the way to a member that reads nothing, more than {bound}");
    assert_eq!(member.next_request().await.body_bytes(), 0);
}

async fn an_upload_goes_on_when_the_member_reads_again(member: Http) {
    let member = member.member().await;
    let gate = Gate::new();
    let script_gate = gate.clone();
    member.on("/x", move |_| Reply::json(201, &json!({})).after(&script_gate));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, "/x");
    let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
    let held = upload.fill(QUIET).await.expect("open");
    let request = member.next_request().await;
    gate.open();
    let rest = 4 << 20;
    upload.send(vec![1; rest]).await.expect("taken");
    assert_eq!(upload.answer().await.expect("an answer").status, 201);
    assert_eq!((request.body_ended().await, request.body_bytes()), (BodyEnd::Complete, (held + rest) as u64));
}

async fn an_early_answer_over_http2_is_relayed_at_once(dialect: Dialect) {
    for client in [Http::H1, Http::H2] {
        relayed_at_once(dialect, client).await;
    }
}

async fn relayed_at_once(dialect: Dialect, client: Http) {
    let member = Http::H2.member().await;
    member.on("/large", |_| Reply::early(413, "limit is 3145728"));
    member.on("/small", |_| Reply::json(201, &json!({})));
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.connect(&testbed, client).await.bearer(ADMIN);
    assert_refused_early(&mut connection, dialect).await;
    let small = dialect.path("/small");
    let again = connection.try_call("POST", &small, &[], b"x").await;
    match client {
        Http::H2 => assert_eq!(again.expect("other requests go on").status, 201),
        // The next bytes would be read as the rest of the body: the connection has to end (RFC 9112
        // section 9.3).
        Http::H1 => assert!(matches!(again, Err(Failure::H1(_))), "{again:?}"),
    }
    let answer = dialect.connect(&testbed, client).await.bearer(ADMIN).call("POST", &small, &[], b"x").await;
    assert_eq!((answer.status, member.connections_accepted()), (201, 1), "the way to the member is not harmed");
}

/// Begins an upload of 100 MB, sends a little of it, and expects the refusal.
pub(super) async fn assert_refused_early(connection: &mut Connection, dialect: Dialect) {
    let target = dialect.path("/large");
    let mut upload = connection.upload("POST", &target, &[("content-length", "104857600")]).await.expect("sent");
    upload.send(vec![0; 64 << 10]).await.expect("taken");
    let head = within(AT_ONCE, "an answer while the upload is open", upload.head()).await;
    let answer = head.expect("an answer").whole().await.expect("a whole one");
    assert_eq!((answer.status, answer.text().as_str()), (413, "limit is 3145728"));
}
