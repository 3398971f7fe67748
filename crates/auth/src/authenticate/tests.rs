//! Tests of the order of the methods, of what one's failure means for the next, and that no
//! credential stays in the headers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use kit::pki::{Authority, Leaf};

use super::*;
use crate::testing::{ScriptedHub, auth, auth_with, authenticated, bundle, front_proxy, headers, peer};
use crate::{Config, Retry, ReviewError};

async fn ask(authenticator: &Authenticator, mut headers: HeaderMap) -> Result<Arc<User>, AuthenticationError> {
    authenticator.authenticate(&peer(&[]), &mut headers).await
}

fn bearer(token: &str) -> HeaderMap {
    headers([("Authorization", format!("Bearer {token}").as_str())])
}

fn websocket(protocols: &[&str]) -> HeaderMap {
    let mut lines = headers([("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket")]);
    for protocol in protocols {
        lines.append("sec-websocket-protocol", protocol.parse().expect("a header value"));
    }
    lines
}

fn entry(token: &str) -> String {
    format!("base64url.bearer.authorization.k8s.io.{}", URL_SAFE_NO_PAD.encode(token))
}

fn is_unauthorized(outcome: &Result<Arc<User>, AuthenticationError>) -> bool {
    matches!(outcome, Err(AuthenticationError::Unauthorized { .. }))
}

#[tokio::test]
async fn a_request_without_credentials_is_anonymous_unless_that_is_off() {
    let hub = ScriptedHub::new();
    let anonymous = ask(&auth(&hub).authenticator, headers([])).await.expect("anonymous");
    assert_eq!(*anonymous, User::anonymous());
    let off = auth_with(&hub, &Config { anonymous: false, ..Config::default() });
    assert!(is_unauthorized(&ask(&off.authenticator, headers([])).await));
}

#[tokio::test]
async fn a_good_bearer_token_is_its_user() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("system:serviceaccount:ci:bot", &["system:serviceaccounts"]));
    let auth = auth(&hub);
    for line in ["Bearer good", "bearer good", "  BEARER good trailing words "] {
        let user = ask(&auth.authenticator, headers([("Authorization", line)])).await.expect(line);
        assert_eq!(user.name, "system:serviceaccount:ci:bot");
        assert_eq!(user.groups, ["system:serviceaccounts", "system:authenticated"]);
    }
}

#[tokio::test]
async fn a_bad_bearer_token_is_never_anonymous() {
    let hub = ScriptedHub::new();
    // A 201 with `authenticated: false`, and a user nevertheless.
    let refused = TokenReviewStatus { authenticated: Some(false), ..authenticated("admin", &["system:masters"]) };
    hub.token("refused", refused);
    hub.token("silent", TokenReviewStatus { authenticated: None, ..authenticated("admin", &[]) });
    hub.token("nameless", authenticated("", &[]));
    let auth = auth(&hub);
    for token in ["unknown", "refused", "silent", "nameless"] {
        assert!(is_unauthorized(&ask(&auth.authenticator, bearer(token)).await), "{token}");
    }
}

#[tokio::test]
async fn what_is_no_bearer_token_is_no_credential() {
    let hub = ScriptedHub::new();
    let auth = auth(&hub);
    for line in ["Basic dTpw", "Bearer", "Bearer ", "Bearer  two-spaces", "good"] {
        let user = ask(&auth.authenticator, headers([("Authorization", line)])).await.expect(line);
        assert_eq!(*user, User::anonymous(), "{line}");
    }
    assert_eq!(hub.token_attempts(), 0);
}

#[tokio::test]
async fn a_token_that_cannot_be_checked_is_an_error_and_not_a_refusal() {
    let hub = ScriptedHub::new();
    hub.fail_next([ReviewError::Hub { message: Arc::from("the hub answered 403 Forbidden"), retry: Retry::Never }]);
    let auth = auth(&hub);
    let outcome = ask(&auth.authenticator, bearer("t")).await;
    assert!(
        matches!(&outcome, Err(AuthenticationError::Review(error)) if error.to_string().contains("403")),
        "{outcome:?}"
    );
    assert!(is_unauthorized(&ask(&auth.authenticator, bearer("t")).await), "an error is not kept");
}

#[tokio::test]
async fn a_client_certificate_names_user_and_groups() {
    let clients = Authority::new("clients");
    let auth = auth(&ScriptedHub::new());
    auth.authenticator.trust.publish_clients(bundle(&clients));
    let issued = clients.issue(&Leaf::client("jane").group("developers").group("system:masters"));
    let peer = peer(&issued.chain_der);
    let user = auth.authenticator.authenticate(&peer, &mut headers([])).await.expect("authenticated");
    assert_eq!(user.name, "jane");
    assert_eq!(user.groups, ["developers", "system:masters", "system:authenticated"]);
    let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
    assert!(id.strip_prefix("X509SHA256=").is_some_and(|hex| hex.len() == 64), "{id}");
    assert!(!peer.is_front_proxy());
}

#[tokio::test]
async fn bad_client_certificates_are_refused_but_do_not_stand_in_the_way_of_a_token() {
    let clients = Authority::new("clients");
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("by-token", &[]));
    let auth = auth(&hub);
    auth.authenticator.trust.publish_clients(bundle(&clients));
    for bad in [
        Authority::new("clients").issue(&Leaf::client("jane")),
        clients.issue(&Leaf::client("jane").expired()),
        clients.issue(&Leaf::server("jane")),
    ] {
        let peer = peer(&bad.chain_der);
        assert!(is_unauthorized(&auth.authenticator.authenticate(&peer, &mut headers([])).await));
        let user = auth.authenticator.authenticate(&peer, &mut bearer("good")).await.expect("by token");
        assert_eq!(user.name, "by-token");
    }
    let nameless = peer(&clients.issue(&Leaf::client("")).chain_der);
    let user = auth.authenticator.authenticate(&nameless, &mut headers([])).await.expect("no opinion");
    assert_eq!(*user, User::anonymous());
}

#[tokio::test]
async fn the_first_method_wins() {
    let (proxies, clients) = (Authority::new("proxies"), Authority::new("clients"));
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("by-token", &[]));
    let auth = auth(&hub);
    auth.authenticator.trust.publish_front_proxy(front_proxy(&proxies, &[]));
    auth.authenticator.trust.publish_clients(bundle(&clients));
    let mut lines = bearer("good");
    lines.insert("x-remote-user", "by-proxy".parse().expect("a value"));
    for (certificate, name) in [
        (proxies.issue(&Leaf::client("proxy")), "by-proxy"),
        (clients.issue(&Leaf::client("by-certificate")), "by-certificate"),
        (Authority::new("others").issue(&Leaf::client("stranger")), "by-token"),
    ] {
        let peer = peer(&certificate.chain_der);
        let user = auth.authenticator.authenticate(&peer, &mut lines.clone()).await.expect(name);
        assert_eq!(user.name, name);
    }
}

#[tokio::test]
async fn a_websocket_may_bring_its_token_as_a_protocol() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("browser", &[]));
    let auth = auth(&hub);
    let good = entry("good");
    for protocols in [
        &[&format!("v5.channel.k8s.io, {good} ,v4.channel.k8s.io")[..]][..],
        &["v5.channel.k8s.io", &good, "v4.channel.k8s.io"],
    ] {
        let mut lines = websocket(protocols);
        let user = auth.authenticator.authenticate(&peer(&[]), &mut lines).await.expect("authenticated");
        assert_eq!(user.name, "browser");
        let left: Vec<_> = lines.get_all("sec-websocket-protocol").iter().collect();
        assert_eq!(left, ["v5.channel.k8s.io,v4.channel.k8s.io"]);
    }
}

#[tokio::test]
async fn a_malformed_protocol_token_is_refused_and_removed() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("browser", &[]));
    let auth = auth(&hub);
    let (good, bad) = (entry("good"), entry("bad"));
    for protocols in [
        &["v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.***"][..],
        &["v5.channel.k8s.io", &good, &good],
        &["v5.channel.k8s.io", &bad],
        &[&good],
    ] {
        let mut lines = websocket(protocols);
        let outcome = auth.authenticator.authenticate(&peer(&[]), &mut lines).await;
        assert!(is_unauthorized(&outcome), "{protocols:?}: {outcome:?}");
        assert!(!format!("{lines:?}").contains("bearer"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_protocol_token_counts_for_websockets_only_and_goes_in_any_case() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("browser", &[]));
    let auth = auth(&hub);
    let mut lines = websocket(&["v5.channel.k8s.io", &entry("good")]);
    lines.remove("upgrade");
    let user = auth.authenticator.authenticate(&peer(&[]), &mut lines).await.expect("anonymous");
    assert_eq!(*user, User::anonymous());
    assert_eq!(lines["sec-websocket-protocol"], "v5.channel.k8s.io");
}

#[tokio::test]
async fn no_claim_stays_in_the_headers_whatever_the_outcome() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    hub.allow(|_| true);
    let auth = auth(&hub);
    let claims = |authorization: &str, impersonate: &str| {
        let mut lines = headers([
            ("Authorization", authorization),
            ("Authorization", "Bearer second"),
            ("X-Remote-User", "admin"),
            ("X-Remote-Group", "system:masters"),
            ("X-Remote-Extra-A", "b"),
            ("X-Remote-Uid", "0"),
            ("X-Remote-Something", "else"),
            ("Impersonate-Group", "g"),
            ("Impersonate-Extra-A%2fb", "c"),
            ("Impersonate-Uid", "1"),
            ("Connection", "Upgrade, X-Remote-User"),
            ("Sec-WebSocket-Protocol", &entry("good")),
            ("User-Agent", "kubectl"),
        ]);
        lines.insert("impersonate-user", impersonate.parse().expect("a value"));
        lines
    };
    for (authorization, impersonate, ok) in
        [("Bearer good", "other", true), ("Bearer good", "", false), ("Bearer bad", "other", false)]
    {
        let mut lines = claims(authorization, impersonate);
        let outcome = auth.authenticator.authenticate(&peer(&[]), &mut lines).await;
        assert_eq!(outcome.is_ok(), ok, "{outcome:?}");
        let left = headers([("Connection", "Upgrade, X-Remote-User"), ("User-Agent", "kubectl")]);
        assert_eq!(lines, left, "{authorization} {impersonate:?}");
    }
}

#[tokio::test]
async fn no_header_may_impersonate_without_permission() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    let auth = auth(&hub);
    let mut lines = bearer("good");
    lines.insert("impersonate-user", "admin".parse().expect("a value"));
    match ask(&auth.authenticator, lines).await {
        Err(AuthenticationError::Forbidden { user, reason, .. }) => {
            assert_eq!((user.name.as_str(), reason.as_str()), ("u", "no RBAC policy matched"));
        }
        other => panic!("{other:?}"),
    }
    let mut anonymous = headers([("Impersonate-User", "admin")]);
    let outcome = auth.authenticator.authenticate(&peer(&[]), &mut anonymous).await;
    assert!(matches!(outcome, Err(AuthenticationError::Forbidden { .. })), "{outcome:?}");
}
