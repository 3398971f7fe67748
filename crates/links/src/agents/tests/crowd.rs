//! Many connections without a credential must not keep agents out.

use tokio::net::TcpSocket;

use super::*;

/// Less than agents wait, and less than a silent connection may stay.
const PROMPTLY: Duration = Duration::from_secs(5);
const NEIGHBOUR: [u8; 4] = [127, 0, 0, 2];
const SAME: [u8; 4] = [127, 0, 0, 1];

async fn connect(fixture: &Fixture, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(fixture.agents.address()).await.unwrap()
}

async fn crowd(fixture: &Fixture, from: [u8; 4], count: usize) -> Vec<TcpStream> {
    let mut crowd = Vec::new();
    for _ in 0..count {
        crowd.push(connect(fixture, from).await);
    }
    crowd
}

async fn is_closed(stream: &mut TcpStream) {
    let closed = within(PROMPTLY, "being closed", stream.read(&mut [0])).await;
    assert!(matches!(closed, Ok(0) | Err(_)));
}

#[tokio::test]
async fn silent_connections_keep_no_agent_out_from_another_address_or_their_own() {
    for from in [NEIGHBOUR, SAME] {
        let fixture = Fixture::start().await;
        let identity = fixture.certificate("system:tunnel-agent:east");
        let mut silent = crowd(&fixture, from, 640).await;
        let agent = within(PROMPTLY, "the link", fixture.link("east", Some(&identity), None)).await;
        let (mut stream, _gauge) = fixture.open("east").await.unwrap();
        echoes(&mut stream).await;
        // Only connections of that address were closed, the oldest first.
        is_closed(&mut silent[0]).await;
        let places = Limits::default().unregistered_per_address;
        let gone = 640 - places + usize::from(from == SAME);
        fixture.metric_becomes(&format!("tunnel_server_registrations_total{{outcome=\"shed\"}} {gone}")).await;
        let newest = silent.last_mut().unwrap();
        let still = timeout(Duration::from_millis(20), newest.read(&mut [0])).await;
        assert!(still.is_err(), "the newest was closed: {still:?}");
        assert!(!agent.ended.is_finished());
    }
}

#[tokio::test]
async fn many_addresses_share_all_places_and_the_one_with_most_gives_way() {
    let limits = Limits { unregistered: 8, unregistered_per_address: 6, ..Limits::default() };
    let fixture = Fixture::with(None, |config| config.limits = limits).await;
    let mut honest = connect(&fixture, [127, 0, 0, 3]).await;
    let mut many = crowd(&fixture, NEIGHBOUR, 6).await;
    let _more = crowd(&fixture, [127, 0, 0, 4], 3).await;
    for stream in &mut many[..2] {
        is_closed(stream).await;
    }
    let _agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"shed\"} 3").await;
    let still = timeout(Duration::from_millis(20), honest.read(&mut [0])).await;
    assert!(still.is_err(), "the first of all was closed: {still:?}");
}

#[tokio::test]
async fn handshake_and_head_together_have_their_time() {
    let settings = Settings { handshake_timeout: Duration::from_secs(3), ..Settings::default() };
    let fixture = Fixture::with(None, |config| config.settings = settings).await;
    let started = Instant::now();
    let stream = connect(&fixture, SAME).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let connector = TlsConnector::from(client_config(Trust::Anyone, None, &["http/1.1"]));
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let closed = within(SOON, "being closed", stream.read(&mut [0])).await;
    assert!(matches!(closed, Ok(0) | Err(_)));
    // With a timeout of its own for the head, it would take five seconds.
    assert!(started.elapsed() < Duration::from_millis(4500), "{:?}", started.elapsed());
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"malformed\"} 1").await;
}

/// Sends an agent's registration with `credential` in its head, and then nothing, not even a close.
async fn applies(fixture: &Fixture, from: [u8; 4], credential: &str) -> TlsStream<TcpStream> {
    applies_for(fixture, from, "east", credential).await
}

async fn applies_for(fixture: &Fixture, from: [u8; 4], cluster: &str, credential: &str) -> TlsStream<TcpStream> {
    let connector = TlsConnector::from(client_config(Trust::Anyone, None, &["http/1.1"]));
    let stream = connect(fixture, from).await;
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let head = format!(
        "GET /tunnel/v1/links HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: cluster-tunnel/1\r\n\
         Tunnel-Cluster: {cluster}\r\nTunnel-Agent: a\r\nTunnel-Link: 0\r\nTunnel-Version: 1\r\n{credential}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn those_who_are_refused_and_do_not_go_hold_up_nobody() {
    let limits = Limits { registering: 1, ..Limits::default() };
    let fixture = Fixture::with(None, |config| config.limits = limits).await;
    let mut refused = Vec::new();
    for _ in 0..12 {
        refused.push(applies(&fixture, SAME, "").await);
    }
    let identity = fixture.certificate("system:tunnel-agent:east");
    within(PROMPTLY, "the link", fixture.link("east", Some(&identity), None)).await;
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"unauthenticated\"} 12").await;
}

#[tokio::test]
async fn those_who_wait_for_the_hub_give_way_too() {
    let limits = Limits { registering: 1, unregistered: 2, ..Limits::default() };
    let fixture = Fixture::with(Some(FakeHub::start().await), |config| config.limits = limits).await;
    fixture.hub().fail(Call::TokenReview, Fault::Hang);
    let apply = || fixture.apply("east", None, Some("token"));
    let judged = async {
        becomes(SOON, "a judgement", async || fixture.hub().calls(Call::TokenReview) == 1).await;
        let ended = tokio::join!(apply(), apply(), apply(), apply());
        assert!(ended.0.is_err() || ended.1.is_err());
    };
    let shown = fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"shed\"} 2");
    tokio::select! {
        _ = apply() => panic!("the hub answered"),
        () = judged => panic!("all waited no longer"),
        () = shown => {}
    }
}

#[tokio::test]
async fn made_up_tokens_of_one_address_keep_no_other_from_being_judged_while_the_hub_is_silent() {
    let limits = Limits { registering: 4, registering_per_address: 2, ..Limits::default() };
    let fixture = Fixture::with(Some(FakeHub::start().await), |config| config.limits = limits).await;
    fixture.hub().allow_all();
    fixture.hub().fail(Call::TokenReview, Fault::Hang);
    let mut made_up = Vec::new();
    for number in 0..8 {
        made_up.push(applies(&fixture, NEIGHBOUR, &format!("Authorization: Bearer made-up-{number}\r\n")).await);
    }
    fixture.hub().called(Call::TokenReview, 2).await;
    // The agent's certificate needs no TokenReview, and the hub still answers its
    // SubjectAccessReview.
    let identity = fixture.certificate("east");
    let _agent = within(PROMPTLY, "the link", fixture.link("east", Some(&identity), None)).await;
    assert_eq!(fixture.hub().calls(Call::TokenReview), 2, "one address has its share");
}

#[tokio::test]
async fn who_is_known_needs_no_room_behind_an_address_of_made_up_tokens() {
    let limits = Limits { registering: 2, registering_per_address: 2, ..Limits::default() };
    let fixture = Fixture::with(Some(FakeHub::start().await), |config| {
        (config.limits, config.recheck) = (limits, Duration::from_mins(1));
    })
    .await;
    fixture.hub().allow_all();
    fixture.hub().add_token("token", TokenUser::new("agent", &[]));
    let _agent = fixture.link("east", None, Some("token")).await;
    let asked = fixture.hub().calls(Call::TokenReview);
    fixture.hub().fail(Call::TokenReview, Fault::Hang);
    let mut made_up = Vec::new();
    for number in 0..4 {
        made_up.push(applies(&fixture, SAME, &format!("Authorization: Bearer made-up-{number}\r\n")).await);
    }
    fixture.hub().called(Call::TokenReview, asked + 2).await;
    // Another link of the same agent.
    within(PROMPTLY, "the link", fixture.apply("east", None, Some("token"))).await.unwrap();
    assert_eq!(fixture.hub().calls(Call::TokenReview), asked + 2, "it is not asked");
    // A cached result says nothing about another cluster.
    fixture.hub().fail(Call::AccessReview, Fault::Hang);
    let other = timeout(Duration::from_millis(200), fixture.apply("west", None, Some("token"))).await;
    assert!(other.is_err(), "nobody has said that it may");
}

/// It has a valid token and no rights, asks for one cluster after the other, and comes from many
/// addresses.
#[tokio::test]
async fn one_identity_keeps_no_other_from_being_judged_while_the_hub_is_slow() {
    const MALLORYS: [u8; 5] = [11, 12, 13, 14, 15];
    let limits = Limits { registering: 80, ..Limits::default() };
    let fixture = Fixture::with(Some(FakeHub::start().await), |config| config.limits = limits).await;
    fixture.hub().on_access(|spec| if spec["user"] == "agent" { Decision::allow() } else { Decision::no_opinion("") });
    fixture.hub().add_token("mallorys", TokenUser::new("system:serviceaccount:agents:mallory", &[]));
    let (status, _, _) = fixture.refused("another", None, Some("mallorys")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let asked = fixture.hub().calls(Call::AccessReview);
    fixture.hub().fail(Call::AccessReview, Fault::Delay(Duration::from_secs(2)));
    let mut open = Vec::new();
    for number in 0..64 * MALLORYS.len() {
        let from = [127, 0, 0, MALLORYS[number % MALLORYS.len()]];
        let cluster = format!("east-{number}");
        open.push(applies_for(&fixture, from, &cluster, "Authorization: Bearer mallorys\r\n").await);
    }
    becomes(SOON, "reviews", async || fixture.hub().calls(Call::AccessReview) >= asked + 25).await;
    let _agent = within(PROMPTLY, "the link", fixture.link("east", Some(&fixture.certificate("agent")), None)).await;
}
