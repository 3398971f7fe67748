//! An answer that the member does not finish is never finished by the gateway: a list cut short
//! must not look complete.

use kit::member::raw::{Act, RawMember};
use kit::wait::within;
use system_tests::{CLUSTER, Failure, Http, Testbed, Versions, across_http, across_versions, proxied};

use super::AT_ONCE;

across_versions!(an_aborted_stream_is_an_aborted_stream);
across_http!(what_is_missing_is_noticed, an_answer_that_ends_with_its_connection_is_whole);

async fn an_aborted_stream_is_an_aborted_stream(versions: Versions) {
    let member = versions.member.member().await;
    let mut streams = member.streams("/x");
    let testbed = Testbed::with(&member).await;
    for target in ["/x", "/x?watch=true"] {
        let mut connection = testbed.connect(versions.client).await;
        let target = proxied(CLUSTER, target);
        let mut answer = connection.open("GET", &target, &[]).await.expect("a head");
        let (_, stream) = streams.next().await;
        assert!(stream.send("some").await);
        assert_eq!(answer.chunk().await.expect("open").expect("data"), "some");
        assert!(stream.abort().await);
        let end = within(AT_ONCE, "the end of a broken answer", answer.chunk()).await;
        assert!(end.is_err(), "a broken answer ended as if it were whole: {end:?}");
    }
}

/// The ways in which an answer of ten bytes ends after five.
pub(crate) fn cuts() -> Vec<(&'static str, Vec<Act>)> {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let counted = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    vec![
        ("half a Content-Length, closed", Act::answer(counted, Act::Close)),
        ("half a Content-Length, cut", Act::answer(counted, Act::Abandon)),
        ("half a Content-Length, reset", Act::answer(counted, Act::Reset)),
        ("no last chunk, closed", Act::answer(chunked, Act::Close)),
        ("no last chunk, cut", Act::answer(chunked, Act::Abandon)),
        ("no last chunk, reset", Act::answer(chunked, Act::Reset)),
        ("half a chunk, closed", Act::half_chunked()),
        ("half a last chunk, closed", Act::answer(format!("{chunked}0\r\n"), Act::Close)),
        ("a malformed chunk", Act::answer(format!("{chunked}zz\r\nhello\r\n0\r\n\r\n"), Act::ReadToEnd)),
        // Without a length the end of TLS is the end of the body: without close_notify, any
        // attacker on the way could have made it.
        ("no length, cut", Act::answer("HTTP/1.1 200 OK\r\n\r\nhello", Act::Abandon)),
    ]
}

async fn what_is_missing_is_noticed(client: Http) {
    for (cut, script) in cuts() {
        let member = RawMember::always(script).await;
        let testbed = Testbed::with(&member).await;
        let answer = testbed.connect(client).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
        match answer {
            Err(Failure::H1(_) | Failure::H2(_)) => {}
            // A reset can reach the gateway before it has read the head.
            Ok(answer) if cut.contains("reset") => assert_eq!(answer.status, 502, "{cut}"),
            Ok(answer) => panic!("{cut}: looks whole: {answer:?}"),
        }
        assert_eq!(member.connection_count(), 1, "{cut}: nothing is tried again");
    }
}

async fn an_answer_that_ends_with_its_connection_is_whole(client: Http) {
    let member = RawMember::always(Act::answer("HTTP/1.1 200 OK\r\n\r\nhello", Act::Close)).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    for _ in 0..2 {
        let answer = connection.get(&proxied(CLUSTER, "/x")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    }
    assert_eq!(member.connection_count(), 2);
}
