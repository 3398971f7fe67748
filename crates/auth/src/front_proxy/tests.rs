//! Tests of which clients may act as a front proxy, and which identities they may send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};
use kit::pki::{Authority, Issued, Leaf};

use super::*;
use crate::clock::Clock;
use crate::identity_headers::IdentityHeaders;
use crate::testing::{ScriptedHub, auth, front_proxy as settings, headers, metrics, peer, strings};
use crate::token::Tokens;
use crate::{AuthenticationError, Authenticator, User};

const NAME: &str = "front-proxy-client";

/// An authenticator that trusts `authority`'s certificates with the name `front-proxy-client`.
fn authenticator(authority: &Authority) -> Arc<Authenticator> {
    let auth = auth(&ScriptedHub::new());
    auth.authenticator.trust.publish_front_proxy(settings(authority, &[NAME]));
    auth.authenticator
}

fn admin() -> HeaderMap {
    headers([
        ("X-Remote-User", "admin"),
        ("X-Remote-Uid", "1"),
        ("X-Remote-Group", "system:masters"),
        ("X-Remote-Extra-Scopes", "all"),
        ("Accept", "*/*"),
    ])
}

async fn user(authenticator: &Authenticator, issued: &Issued, mut headers: HeaderMap) -> User {
    let peer = peer(&issued.chain_der);
    let user = authenticator.authenticate(&peer, &mut headers).await.expect("authenticated");
    assert!(peer.is_front_proxy());
    assert!(!headers.keys().any(|name| name.as_str().starts_with("x-remote")), "{headers:?}");
    Arc::unwrap_or_clone(user)
}

#[tokio::test]
async fn without_a_certificate_identity_headers_mean_nothing() {
    let authenticator = authenticator(&Authority::new("proxies"));
    let mut headers = admin();
    let user = authenticator.authenticate(&peer(&[]), &mut headers).await.expect("anonymous");
    assert_eq!(*user, User::anonymous());
    assert_eq!(headers.len(), 1, "only Accept is left: {headers:?}");
}

#[tokio::test]
async fn where_no_front_proxy_comes_its_certificate_makes_nothing_count_either() {
    let proxies = Authority::new("proxies");
    let authenticator = authenticator(&proxies);
    let chain = proxies.issue(&Leaf::client(NAME)).chain_der;
    assert!(authenticator.recognize(&peer(&chain)));
    let peer = peer(&chain).without_front_proxy();
    assert!(!authenticator.recognize(&peer));
    let mut headers = admin();
    let user = authenticator.authenticate(&peer, &mut headers).await.expect("anonymous");
    assert_eq!((&*user, peer.is_front_proxy()), (&User::anonymous(), false));
    assert_eq!(headers.len(), 1, "only Accept is left: {headers:?}");
}

#[tokio::test]
async fn no_other_certificate_makes_identity_headers_count() {
    let proxies = Authority::new("proxies");
    let strangers = [
        ("another authority", Authority::new("proxies").issue(&Leaf::client(NAME))),
        ("another name", proxies.issue(&Leaf::client("front-proxy-client2"))),
        ("no name", proxies.issue(&Leaf::client(""))),
        ("expired", proxies.issue(&Leaf::client(NAME).expired())),
        ("not yet valid", proxies.issue(&Leaf::client(NAME).not_yet_valid())),
        ("for servers", proxies.issue(&Leaf::server(NAME))),
    ];
    let authenticator = authenticator(&proxies);
    for (what, stranger) in strangers {
        let peer = peer(&stranger.chain_der);
        let mut headers = admin();
        let refused = authenticator.authenticate(&peer, &mut headers).await;
        assert!(matches!(refused, Err(AuthenticationError::Unauthorized { .. })), "{what}: {refused:?}");
        assert!(!peer.is_front_proxy(), "{what}");
        assert_eq!(headers.len(), 1, "{what}: {headers:?}");
    }
}

#[tokio::test]
async fn the_proxy_names_user_uid_groups_and_extras() {
    let proxies = Authority::new("proxies");
    let lines = headers([
        ("X-Remote-User", "jörg"),
        ("X-Remote-User", "second line"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Group", ""),
        ("X-Remote-Group", "a"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fNode-Name", "knoten-ö"),
        ("X-Remote-Extra-Scopes", "one"),
        ("X-Remote-Extra-Scopes", "two"),
    ]);
    let user = user(&authenticator(&proxies), &proxies.issue(&Leaf::client(NAME)), lines).await;
    assert_eq!(user.name, "jörg");
    assert_eq!(user.uid.as_deref(), Some("42"));
    assert_eq!(user.groups, ["b", "a", "system:authenticated"]);
    let extra: Vec<(&str, Vec<&str>)> =
        user.extra.iter().map(|(key, values)| (key.as_str(), values.iter().map(String::as_str).collect())).collect();
    assert_eq!(extra, [("authentication.kubernetes.io/node-name", vec!["knoten-ö"]), ("scopes", vec!["one", "two"])]);
}

#[tokio::test]
async fn six_hundred_groups_arrive_in_order() {
    let proxies = Authority::new("proxies");
    let groups: Vec<String> = (0..600).map(|number| format!("group-{number}")).collect();
    let mut lines = vec![("X-Remote-User", "u")];
    lines.extend(groups.iter().map(|group| ("X-Remote-Group", group.as_str())));
    let user = user(&authenticator(&proxies), &proxies.issue(&Leaf::client(NAME)), headers(lines)).await;
    assert_eq!(user.groups[..600], groups[..]);
}

#[tokio::test]
async fn a_uid_header_counts_only_if_configured() {
    let proxies = Authority::new("proxies");
    let auth = auth(&ScriptedHub::new());
    let mut old_hub = settings(&proxies, &[]);
    old_hub.headers.uid.clear();
    auth.authenticator.trust.publish_front_proxy(old_hub);
    let user = user(&auth.authenticator, &proxies.issue(&Leaf::client("any name will do")), admin()).await;
    assert_eq!(user.uid, None);
}

#[tokio::test]
async fn configured_header_names_are_read_and_taken() {
    let proxies = Authority::new("proxies");
    let auth = auth(&ScriptedHub::new());
    let names = IdentityHeaders::new(
        &strings(&["X-Missing", "X-Login", " not a name "]),
        &[],
        &strings(&["X-Team"]),
        &strings(&["X-More-", ""]),
    );
    auth.authenticator.trust.publish_front_proxy(FrontProxySettings { headers: names, ..settings(&proxies, &[NAME]) });
    let peer = peer(&proxies.issue(&Leaf::client(NAME)).chain_der);
    let mut lines = headers([
        ("X-Login", "u"),
        ("X-Team", "t"),
        ("X-More-Data", "d"),
        ("X-Remote-User", "admin"),
        ("X-Remote-Foo", "x"),
        ("Accept", "*/*"),
    ]);
    let user = auth.authenticator.authenticate(&peer, &mut lines).await.expect("authenticated");
    assert_eq!((user.name.as_str(), &user.groups[0], &user.extra["data"]), ("u", &"t".to_owned(), &strings(&["d"])));
    assert_eq!(lines, headers([("Accept", "*/*")]));
}

#[tokio::test]
async fn the_proxy_without_a_user_name_is_nobody() {
    let proxies = Authority::new("proxies");
    let authenticator = authenticator(&proxies);
    let peer = peer(&proxies.issue(&Leaf::client(NAME)).chain_der);
    for lines in [headers([]), headers([("X-Remote-User", "")]), headers([("X-Remote-Group", "system:masters")])] {
        let refused = authenticator.authenticate(&peer, &mut lines.clone()).await;
        assert!(matches!(refused, Err(AuthenticationError::Unauthorized { .. })), "{lines:?}: {refused:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_refused() {
    let proxies = Authority::new("proxies");
    let authenticator = authenticator(&proxies);
    let peer = peer(&proxies.issue(&Leaf::client(NAME)).chain_der);
    let mut lines = HeaderMap::new();
    lines.insert("x-remote-user", HeaderValue::from_bytes(b"j\xf6rg").expect("a legal value"));
    let refused = authenticator.authenticate(&peer, &mut lines).await;
    assert!(matches!(refused, Err(AuthenticationError::Unauthorized { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_rotated_authority_counts_from_the_next_request_of_an_open_connection() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let authenticator = authenticator(&old);
    let (old_peer, new_peer) =
        (peer(&old.issue(&Leaf::client(NAME)).chain_der), peer(&new.issue(&Leaf::client(NAME)).chain_der));
    authenticator.authenticate(&old_peer, &mut admin()).await.expect("trusted");
    authenticator.authenticate(&new_peer, &mut admin()).await.expect_err("not trusted yet");

    authenticator.trust.publish_front_proxy(settings(&new, &[NAME]));
    authenticator.authenticate(&old_peer, &mut admin()).await.expect_err("no longer trusted");
    assert!(!old_peer.is_front_proxy());
    let user = authenticator.authenticate(&new_peer, &mut admin()).await.expect("trusted now");
    assert_eq!(user.name, "admin");
}

#[tokio::test]
async fn a_certificate_that_expires_on_an_open_connection_stops_counting() {
    let proxies = Authority::new("proxies");
    let auth = auth(&ScriptedHub::new());
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let time = Arc::new(AtomicU64::new(seconds));
    let authenticator = Authenticator {
        trust: Arc::default(),
        tokens: Tokens { file: None, hub: None },
        anonymous: None,
        authorizer: auth.authorizer,
        clock: Clock::Fixed(Arc::clone(&time)),
        metrics: metrics(),
    };
    authenticator.trust.publish_front_proxy(settings(&proxies, &[NAME]));
    let leaf = Leaf::client(NAME).valid(time::Duration::hours(1), time::Duration::hours(2));
    let peer = peer(&proxies.issue(&leaf).chain_der);

    authenticator.authenticate(&peer, &mut admin()).await.expect_err("not valid yet");
    time.store(seconds + 90 * 60, Ordering::SeqCst);
    authenticator.authenticate(&peer, &mut admin()).await.expect("valid");
    time.store(seconds + 150 * 60, Ordering::SeqCst);
    authenticator.authenticate(&peer, &mut admin()).await.expect_err("expired");
}

#[tokio::test]
async fn an_intermediate_comes_from_the_presented_chain() {
    let root = Authority::new("root");
    let issued = root.intermediate("below").issue(&Leaf::client(NAME));
    let authenticator = authenticator(&root);
    authenticator.authenticate(&peer(&issued.chain_der), &mut admin()).await.expect("whole chain");
    authenticator.authenticate(&peer(&issued.chain_der[..1]), &mut admin()).await.expect_err("a link is missing");
}

#[tokio::test]
async fn a_remembered_user_is_found_by_all_its_lines_and_no_fewer() {
    let proxies = Authority::new("proxies");
    let authenticator = authenticator(&proxies);
    let peer = peer(&proxies.issue(&Leaf::client(NAME)).chain_der);
    let ask = async |lines: &[(&'static str, &'static str)]| {
        authenticator.authenticate(&peer, &mut headers(lines.iter().copied())).await.expect("authenticated")
    };
    let first = ask(&[("x-remote-user", "u"), ("x-remote-group", "ab")]).await;
    assert!(Arc::ptr_eq(&first, &ask(&[("x-remote-user", "u"), ("x-remote-group", "ab"), ("accept", "x")]).await));
    for other in [
        &[("x-remote-user", "u"), ("x-remote-group", "a"), ("x-remote-group", "b")][..],
        &[("x-remote-user", "ua"), ("x-remote-group", "b")],
        &[("x-remote-user", "u"), ("x-remote-uid", "ab")],
        &[("x-remote-user", "u"), ("x-remote-extra-ab", "")],
        &[("x-remote-user", "u")],
    ] {
        assert_ne!(*first, *ask(other).await, "{other:?}");
    }
}
