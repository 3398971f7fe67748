//! Requests that wait for room at a member get the first that comes free, whatever else they wait
//! for.

use system_tests::prelude::*;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::SOON;

/// Passes the first connection on to `member`; later ones are accepted, sent to `hanging`, and
/// never answered.
async fn pass_the_first(listener: TcpListener, member: std::net::SocketAddr, hanging: mpsc::Sender<TcpStream>) {
    let (mut first, _) = listener.accept().await.expect("a connection");
    let mut to = TcpStream::connect(member).await.expect("the member listens");
    tokio::spawn(async move { tokio::io::copy_bidirectional(&mut first, &mut to).await });
    while let Ok((next, _)) = listener.accept().await {
        if hanging.send(next).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn room_that_comes_free_is_used_while_a_dial_hangs() {
    let member = FakeMember::start(MemberOptions { max_concurrent_streams: 1, ..MemberOptions::default() }).await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let mut streams = member.streams("/stream");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    let secret = ClusterSecret::new("vela-system", CLUSTER).endpoint(&url).ca(&member.ca_pem()).token(MEMBER_TOKEN);
    let testbed = Testbed::builder().cluster(CLUSTER, secret).start().await;
    let (hanging, mut dials) = mpsc::channel(8);
    tokio::spawn(pass_the_first(listener, member.address(), hanging));

    let connection = testbed.connect(Http::H2).await;
    let first = connection.open_beside("GET", &proxied(CLUSTER, "/stream")).await.expect("a head");
    let (_, stream) = streams.next().await;
    let mut other = testbed.connect(Http::H2).await;
    let waiting = tokio::spawn(async move { other.get(&proxied(CLUSTER, "/small")).await });
    let _dial = within(WAIT, "a dial of the one that waits", dials.recv()).await.expect("the listener runs");

    drop(first);
    stream.gone().await;
    let answer = within(SOON, "the answer to a later one", testbed.get(&proxied(CLUSTER, "/small"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = within(SOON, "the answer to the one that waited", waiting).await.expect("no panic");
    assert_eq!(answer.status, 200, "{}", answer.text());
}
