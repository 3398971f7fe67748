use http::header::DATE;
use http::header::ETAG;
use http::{HeaderName, HeaderValue};
use kit::wait::{WAIT, eventually};
use tokio::io::duplex;

use super::*;

const MIB: usize = 1 << 20;

fn budget() -> Budget {
    Budget::new(8 * MIB as u64)
}

fn connection(budget: &Budget, address: [u8; 4]) -> Account {
    open(budget, 0, address.into())
}

fn request(budget: &Budget, connection: &Account, user: &str) -> Account {
    let account = open_request(budget, 0, connection, (&Method::GET, &Uri::default()), &HeaderMap::new());
    account.holder().identified(&user_of(user));
    account
}

fn user_of(name: &str) -> Arc<User> {
    Arc::new(User { name: name.to_owned(), ..User::default() })
}

fn is_ended(account: &Account) -> bool {
    use futures_util::FutureExt as _;
    account.ended().now_or_never().is_some()
}

#[test]
fn a_users_requests_count_together_over_the_hubs_connection() {
    let budget = budget();
    let hub = connection(&budget, [10, 0, 0, 1]);
    hub.holder().authenticated(&user_of("first"), true);
    let greedy: Vec<_> = (0..5).map(|_| request(&budget, &hub, "greedy")).collect();
    for request in &greedy {
        request.take(MIB);
    }
    let modest = request(&budget, &hub, "modest");
    modest.take(2 * MIB);
    assert_eq!(budget.sheds(), 0);
    modest.take(MIB);
    assert!(!is_ended(&modest) && greedy.iter().any(is_ended) && !is_ended(&hub));
}

#[test]
fn strangers_go_before_users_who_hold_more() {
    let budget = budget();
    let stranger = connection(&budget, [10, 0, 0, 9]);
    let known = connection(&budget, [10, 0, 0, 1]);
    known.holder().authenticated(&user_of("known"), false);
    known.take(7 * MIB);
    stranger.take(MIB);
    assert!(is_ended(&stranger) && !is_ended(&known));
}

#[test]
fn what_is_left_of_answers_ends_with_the_clients_connection_and_never_with_the_hubs() {
    for (is_front_proxy, ends) in [(true, false), (false, true)] {
        let budget = budget();
        let connection = connection(&budget, [10, 0, 0, 1]);
        connection.holder().authenticated(&user_of("first"), is_front_proxy);
        let request = request(&budget, &connection, "first");
        request.take(7 * MIB);
        request.holder().end_with_connection();
        request.take(2 * MIB);
        assert_eq!(is_ended(&connection), ends, "front proxy: {is_front_proxy}");
    }
}

#[test]
fn an_upgrade_through_the_hub_gives_way_for_what_its_user_holds() {
    let budget = budget();
    let upgrading = connection(&budget, [10, 0, 0, 1]);
    upgrading.holder().authenticated(&user_of("greedy"), true);
    let upgrade = request(&budget, &upgrading, "greedy");
    upgrade.holder().end_with_own_connection();
    upgrade.take(7 * MIB);
    let modest = request(&budget, &connection(&budget, [10, 0, 0, 2]), "modest");
    modest.take(MIB);
    assert!(is_ended(&upgrade) && !is_ended(&modest));
}

#[test]
fn anonymous_requests_go_before_users_who_hold_more() {
    for is_front_proxy in [false, true] {
        let budget = budget();
        let hub = connection(&budget, [10, 0, 0, 1]);
        hub.holder().authenticated(&user_of("known"), is_front_proxy);
        let stranger = request(&budget, &hub, "system:anonymous");
        let known = request(&budget, &hub, "known");
        known.take(6 * MIB);
        stranger.take(2 * MIB);
        assert!(is_ended(&stranger) && !is_ended(&known), "front proxy: {is_front_proxy}");
    }
}

#[test]
fn a_path_counts() {
    let budget = budget();
    let connection = connection(&budget, [10, 0, 0, 1]);
    let before = budget.held();
    let uri: Uri = format!("/{}", "x".repeat(60_000)).parse().unwrap();
    let _request = open_request(&budget, 0, &connection, (&Method::GET, &uri), &HeaderMap::new());
    assert!(budget.held() - before > 2 * 60_000, "the client's and the member's");
}

/// HTTP/2 gives each of them as many bytes as a header, and the request line of one that waits
/// keeps them.
#[test]
fn what_is_neither_a_path_nor_a_header_counts() {
    let budget = budget();
    let connection = connection(&budget, [10, 0, 0, 1]);
    let before = budget.held();
    let method = Method::from_bytes("X".repeat(60_000).as_bytes()).unwrap();
    let request = open_request(&budget, 0, &connection, (&method, &Uri::from_static("/")), &HeaderMap::new());
    assert!(budget.held() - before > 2 * 60_000, "copies of it, too");
    drop(request);
    assert_eq!(budget.held(), before);
    let uri = Uri::builder().scheme("https").authority("a".repeat(60_000)).path_and_query("/").build().unwrap();
    let _request = open_request(&budget, 0, &connection, (&Method::GET, &uri), &HeaderMap::new());
    assert!(budget.held() - before > 60_000);
}

/// Of lines of a few bytes, the tables of headers take most: an entry is 104 bytes, and a further
/// value of one name 72.
#[test]
fn short_lines_count_with_their_places_in_tables() {
    const LINES: usize = 8000;
    let budget = budget();
    let connection = connection(&budget, [10, 0, 0, 1]);
    let names = (0..LINES).map(|number| HeaderName::try_from(format!("x{number}")).unwrap());
    let different: HeaderMap = names.map(|name| (name, HeaderValue::from_static(""))).collect();
    let same: HeaderMap = (0..LINES).map(|_| (ETAG, HeaderValue::from_static(""))).collect();
    for (headers, place) in [(different, 104), (same, 72)] {
        assert_eq!(headers.len(), LINES);
        let before = budget.held();
        let request = open_request(&budget, 0, &connection, (&Method::GET, &Uri::from_static("/")), &headers);
        let tables = 3 * (place * LINES - 5 * 1024);
        assert!(budget.held() - before > tables as u64, "{place}: {}", budget.held() - before);
        drop(request);
        assert_eq!(budget.held(), before);
    }
}

/// Bytes of requests that wait for the hub's authentication belong to no user yet.
#[test]
fn nobody_is_called_as_the_hubs_address() {
    let budget = budget();
    let hub = connection(&budget, [10, 0, 0, 1]);
    hub.holder().authenticated(&user_of("first"), true);
    let waiting = open_request(&budget, 0, &hub, (&Method::GET, &Uri::default()), &HeaderMap::new());
    waiting.take(4 * MIB);
    let namesake = request(&budget, &hub, "10.0.0.1");
    namesake.take(3 * MIB);
    request(&budget, &hub, "greedy").take(4 * MIB + MIB / 2);
    assert!(!is_ended(&waiting) && !is_ended(&namesake));
}

/// A user that may create one may create any number.
#[test]
fn the_service_accounts_of_a_namespace_count_together() {
    let budget = budget();
    let hub = connection(&budget, [10, 0, 0, 1]);
    hub.holder().authenticated(&user_of("first"), true);
    let accounts: Vec<_> =
        (0..5).map(|number| request(&budget, &hub, &format!("system:serviceaccount:greedy:bot-{number}"))).collect();
    let elsewhere = request(&budget, &hub, "system:serviceaccount:modest:bot-0");
    for account in &accounts {
        account.take(MIB);
    }
    elsewhere.take(2 * MIB);
    let namesake = request(&budget, &hub, "system:serviceaccounts:greedy");
    namesake.take(2 * MIB);
    assert!(accounts.iter().any(is_ended) && !is_ended(&elsewhere) && !is_ended(&namesake));
}

#[test]
fn room_for_connections_is_made_by_whoever_has_most_idle_ones_first_and_never_by_the_hub() {
    let budget = budget();
    let of = |user: &str, is_front_proxy, count: u8| -> Vec<_> {
        let open = |number| {
            let connection = connection(&budget, [10, 0, 0, number]);
            connection.holder().authenticated(&user_of(user), is_front_proxy);
            connection
        };
        (0..count).map(open).collect()
    };
    let (hub, many, one) = (of("first", true, 40), of("many", false, 20), of("one", false, 1));
    let _busy: Vec<_> = many[..18].iter().map(|connection| request(&budget, connection, "many")).collect();
    let stranger = connection(&budget, [10, 0, 0, 99]);
    assert_eq!(budget.thin_out(0, 0, Holding::known_connection), 2);
    assert!(many[..18].iter().all(|connection| !is_ended(connection)) && many[18..].iter().all(is_ended));
    assert!(![&hub[..], &one, &[stranger]].concat().iter().any(is_ended));
    drop(many);
    assert_eq!(budget.thin_out(0, 1, Holding::known_connection), 0, "the hub has most, and stays");
}

/// Waiting bytes keep no more memory than they count.
#[test]
fn what_waits_is_no_slice_of_a_large_buffer() {
    let budget = budget();
    let account = request(&budget, &connection(&budget, [10, 0, 0, 1]), "one");
    let before = budget.held();
    let buffer = Bytes::from(vec![7; 64 << 10]);
    let (small, large) = (buffer.slice(..1000), buffer.slice(..PINS));
    let is_slice = |piece: &Bytes| piece.as_ptr() == buffer.as_ptr();
    let first = hold_piece(&account, small.clone());
    assert!(is_slice(&first), "it may leave at once");
    let second = hold_piece(&account, small);
    assert!(!is_slice(&second) && is_slice(&hold_piece(&account, large.clone())));
    let (first, large) = (apart(&account, first), apart(&account, large));
    assert!(!is_slice(&first) && is_slice(&large) && first == second);
    assert_eq!(budget.held() - before, 2 * (1000 + FRAME as u64));
    drop((first, second));
    assert_eq!(budget.held(), before);
}

#[test]
fn certificates_count_as_tls_has_them_too() {
    assert_eq!(certificates(&[CertificateDer::from(vec![0; 100]), CertificateDer::from(vec![0; 50])]), 300);
}

/// h2 holds the head until it is sent.
#[test]
fn the_head_of_an_answer_counts_with_its_request() {
    let budget = Budget::new(1 << 30);
    let connection = open(&budget, 0, [10, 0, 0, 1].into());
    let before = budget.held();
    for (value, is_all, counts) in [(10, false, false), (10, true, true), (2000, false, true)] {
        let account = open_request(&budget, 0, &connection, (&Method::GET, &Uri::from_static("/")), &HeaderMap::new());
        let value = HeaderValue::from_str(&"x".repeat(value)).unwrap();
        let mut headers = HeaderMap::from_iter([(DATE, HeaderValue::from_static("now")), (ETAG, value)]);
        hold_head(&account, &mut headers, is_all);
        drop(account);
        let held = budget.held() - before;
        assert_eq!(held > 4096, counts, "{held} bytes, {is_all}");
        assert_eq!(headers[DATE], "now");
        drop(headers);
        assert_eq!(budget.held(), before);
    }
}

#[test]
fn what_waits_in_the_tunnel_counts_for_the_request_while_it_has_the_connection() {
    use tunnel::HeldObserver as _;
    let budget = Budget::new(1 << 30);
    let cluster = api::cluster_name::ClusterName::parse("c1").unwrap();
    let member = MemberAccounts::new(budget.clone(), cluster).open(0);
    let request = request(&budget, &connection(&budget, [10, 0, 0, 1]), "one");
    let before = (member.held(), request.held());
    let backlog = Backlog::new(&member);
    backlog.unread(MIB);
    assert_eq!((member.held(), request.held()), (before.0 + MIB as u64, before.1));
    backlog.count_for(&request);
    backlog.unread(2 * MIB);
    assert_eq!((member.held(), request.held()), (before.0, before.1 + 2 * MIB as u64));
    let unsent = backlog.unsent(Bytes::from(vec![7_u8; MIB]));
    assert_eq!((member.held(), request.held()), (before.0, before.1 + (3 * MIB + FRAME) as u64));
    backlog.count_for_connection();
    assert_eq!((member.held(), request.held()), (before.0 + 2 * MIB as u64, before.1 + (MIB + FRAME) as u64));
    assert!(unsent.iter().all(|byte| *byte == 7) && request.lent() == 0);
    drop((backlog, unsent));
    assert_eq!((member.held(), request.held()), before);
}

#[test]
fn each_short_piece_counts_with_what_http2_keeps_for_it() {
    use tunnel::HeldObserver as _;
    const PIECES: usize = 1000;
    let budget = Budget::new(1 << 30);
    let account = request(&budget, &connection(&budget, [10, 0, 0, 1]), "one");
    let (backlog, all) = (Backlog::new(&account), Bytes::from(vec![7; PIECES]));
    let before = budget.held();
    let byte = |at: usize| all.slice(at..=at);
    let ways: [&dyn Fn(usize) -> Bytes; 4] = [
        &|at| hold_piece(&account, byte(at)),
        &|at| apart(&account, byte(at)),
        &|at| hold_part(&account, byte(at)),
        &|at| backlog.unsent(byte(at)),
    ];
    for (number, way) in ways.iter().enumerate() {
        let pieces: Vec<Bytes> = (0..PIECES).map(way).collect();
        let held = budget.held() - before;
        assert!(held >= (PIECES * FRAME) as u64, "way {number}: {held} bytes");
        assert!(pieces.iter().flatten().all(|byte| *byte == 7), "way {number}");
        drop(pieces);
        assert_eq!(budget.held(), before, "way {number}");
    }
}

/// The peer takes nothing at first.
#[tokio::test]
async fn short_pieces_count_until_http2_has_sent_them_or_the_stream_is_reset() {
    const PIECES: usize = 100;
    for is_reset in [false, true] {
        let budget = Budget::new(1 << 30);
        let account = request(&budget, &connection(&budget, [10, 0, 0, 1]), "one");
        let before = budget.held();
        let (ours, theirs) = duplex(1 << 10);
        let (server, client) = tokio::join!(h2::server::handshake(ours), h2::client::handshake(theirs));
        let (mut connection, (mut requests, driver)) = (server.unwrap(), client.unwrap());
        tokio::spawn(driver);
        let asked = http::Request::get("https://gateway/").body(()).unwrap();
        let _answer = requests.send_request(asked, true).unwrap();
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
        for _ in 0..PIECES {
            stream.send_data(hold_piece(&account, Bytes::from_static(b"x")), false).unwrap();
        }
        assert_eq!(budget.held() - before, (PIECES * (1 + FRAME)) as u64);
        if is_reset {
            stream.send_reset(h2::Reason::CANCEL);
        } else {
            stream.send_data(Bytes::new(), true).unwrap();
        }
        tokio::spawn(async move { while connection.accept().await.is_some() {} });
        eventually(WAIT, || budget.held() == before).await;
    }
}
