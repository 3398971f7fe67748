//! The two heads of an upgrade: the protocol's headers cross as they were sent, those that identify
//! the caller never do.

use kit::member::raw::{Act, RawMember};
use kit::pki::ALPN_BOTH;
use system_tests::{ADMIN, CLUSTER, Dialect, MEMBER_TOKEN, Testbed, across_dialects, cluster};

use super::{EXEC, Head, SPDY, refusal, upgrade, upgrade_as};

across_dialects!(
    a_websocket_request_reaches_the_member_as_it_was_sent,
    a_spdy_request_keeps_its_method_its_empty_body_and_the_order_of_its_versions,
    the_members_101_reaches_the_client_as_it_was_sent,
    neither_nominated_headers_nor_identities_cross,
    naming_an_impersonation_header_in_connection_does_not_shed_it,
    the_bearer_subprotocol_authenticates_and_stays_here,
    a_bad_bearer_subprotocol_is_unauthorized,
    the_member_is_asked_for_http_1_1_alone,
);

/// `base64url` of [`ADMIN`].
const ADMIN_BASE64URL: &str = "YWRtaW4tdG9rZW4";
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

async fn agreeable() -> RawMember {
    RawMember::always(Act::upgrade("websocket", b"")).await
}

async fn a_websocket_request_reaches_the_member_as_it_was_sent(dialect: Dialect) {
    let member = agreeable().await;
    let secret = cluster(CLUSTER, &member).endpoint(&format!("{}/base/path", member.url()));
    let testbed = dialect.on(Testbed::builder().cluster(CLUSTER, secret)).start().await;
    let rest = "/api/v1/namespaces/ns/pods/p%2F/exec/?command=sh&command=-c&stdin=&a=b;c&x=%20+";
    let headers = [
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Protocol", "v5.channel.k8s.io, v4.channel.k8s.io"),
        ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
        ("Origin", "https://dashboard.example"),
        ("User-Agent", "kubectl/v1.33.1 (linux/amd64)"),
        ("Audit-ID", "7a4d7a1e-5b1f-4c8b-9c59-000000000000"),
    ];
    let (_connection, head) = upgrade_as(dialect, ADMIN, &testbed, ("GET", rest), "websocket", &headers).await;
    assert_eq!(head.status, 101);
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(seen.line, format!("GET /base/path{rest} HTTP/1.1"));
    for (name, value) in headers {
        assert_eq!(seen.values(&name.to_ascii_lowercase()), [value], "{name}");
    }
    assert_eq!(seen.values("connection"), ["Upgrade"]);
    assert_eq!(seen.values("upgrade"), ["websocket"]);
    assert_eq!(seen.values("host"), [member.address().to_string()]);
    assert_eq!(seen.values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);
    assert!(seen.values("transfer-encoding").is_empty(), "{seen:?}");
}

async fn a_spdy_request_keeps_its_method_its_empty_body_and_the_order_of_its_versions(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade(SPDY, b"")).await;
    let testbed = dialect.testbed(&member).await;
    let versions =
        ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
    let mut headers = vec![("Content-Length", "0")];
    headers.extend(versions.map(|version| ("X-Stream-Protocol-Version", version)));
    let (_connection, head) = upgrade_as(dialect, ADMIN, &testbed, ("POST", EXEC), SPDY, &headers).await;
    assert_eq!((head.status, head.header("upgrade")), (101, Some(SPDY)));
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(seen.line, format!("POST {EXEC} HTTP/1.1"));
    assert_eq!(seen.values("x-stream-protocol-version"), versions);
    assert_eq!(seen.values("content-length"), ["0"]);
    assert_eq!(seen.values("upgrade"), [SPDY]);
}

async fn the_members_101_reaches_the_client_as_it_was_sent(dialect: Dialect) {
    let headers = [
        ("upgrade", "websocket"),
        ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("sec-websocket-protocol", "v5.channel.k8s.io"),
        ("sec-websocket-extensions", "permessage-deflate"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ("warning", "299 - \"the pod is old\""),
        ("audit-id", "7a4d7a1e-5b1f-4c8b-9c59-000000000000"),
        ("date", "Tue, 15 Nov 1994 08:12:31 GMT"),
    ];
    let lines = headers.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nSet-Cookie: a=b\r\n{lines}\r\n"
    );
    let member = RawMember::always(Act::answer(answer, Act::Hold)).await;
    let testbed = dialect.testbed(&member).await;
    let (_connection, head) = upgrade(dialect, &testbed, "GET", EXEC, "websocket").await;
    assert_eq!((head.status, head.reason.as_str()), (101, "Switching Protocols"));
    assert!(head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("upgrade")), "{head:?}");
    for (name, value) in headers {
        let values: Vec<_> = head.headers.get_all(name).iter().collect();
        assert_eq!(values, [value], "{name}");
    }
    for name in ["content-length", "transfer-encoding", "x-hop", "set-cookie"] {
        assert_eq!(head.header(name), None, "{name} does not belong in this 101");
    }
}

async fn neither_nominated_headers_nor_identities_cross(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection:\r\nConnection: keep-alive , UPGRADE,X-Nominated\r\n\
         Connection: Authorization, X-Remote-Group, Host, Sec-WebSocket-Key\r\nUpgrade: websocket\r\nX-Nominated: 1\r\n\
         Authorization: Bearer {ADMIN}\r\nX-Remote-User: root\r\nx-remote-group: system:masters\r\n\
         X-Remote-Extra-Scopes: all\r\nX_Remote_User: root\r\nImpersonate_User: root\r\nCookie: session=1\r\n\
         Keep-Alive: timeout=5\r\nProxy-Authorization: Basic eDp5\r\nTE: trailers\r\nX-Kept: 1\r\n\
         Sec-WebSocket-Version: 13\r\n\r\n",
        dialect.path(EXEC)
    );
    connection.send(head).await.unwrap();
    assert_eq!(connection.head().await.unwrap().status, 101);
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(seen.values("connection"), ["Upgrade"]);
    assert_eq!(seen.values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);
    assert_eq!(seen.values("host"), [member.address().to_string()]);
    assert_eq!(seen.values("x-kept"), ["1"]);
    for gone in ["x-nominated", "sec-websocket-key", "cookie", "keep-alive", "proxy-authorization"] {
        assert!(seen.values(gone).is_empty(), "{gone}: {seen:?}");
    }
    // In Karmada's dialect the member sees the caller, and none of whom the caller speaks.
    let caller = [("impersonate-user", "admin"), ("impersonate-uid", "1"), ("impersonate-group", "system:masters")];
    let is_caller = |name: &str| {
        let its = caller.iter().find(|(its, _)| *its == name);
        dialect == Dialect::Karmada && its.is_some_and(|(_, value)| seen.values(name) == [*value])
    };
    for name in seen.names() {
        let plain = name.replace('_', "-");
        let is_identity = plain.starts_with("x-remote-") || plain.starts_with("impersonate-");
        assert!(!is_identity || is_caller(name), "{name}: {seen:?}");
    }
}

async fn naming_an_impersonation_header_in_connection_does_not_shed_it(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, Impersonate-User\r\nUpgrade: websocket\r\n\
         Authorization: Bearer {ADMIN}\r\nImpersonate-User: viewer\r\n\r\n",
        dialect.path(EXEC)
    );
    connection.send(head).await.unwrap();
    let head = connection.head().await.unwrap();
    let message = refusal((connection, head)).await.status_message(403, "Forbidden");
    assert!(message.contains("User \"viewer\" cannot create"), "{message}");
    assert_eq!(member.connection_count(), 0);
}

async fn the_bearer_subprotocol_authenticates_and_stays_here(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    let protocols = format!("v5.channel.k8s.io, {BEARER_PROTOCOL}{ADMIN_BASE64URL} , v4.channel.k8s.io");
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    let headers = [("Sec-WebSocket-Protocol", protocols.as_str())];
    let head = connection.upgrade("GET", &dialect.path(EXEC), "websocket", &headers).await.unwrap();
    assert_eq!(head.status, 101);
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(without_spaces(&seen.values("sec-websocket-protocol")), "v5.channel.k8s.io,v4.channel.k8s.io");
    assert_eq!(seen.values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);

    // Also where it was not needed, because something else had authenticated the caller.
    let (_connection, head) = upgrade_as(dialect, ADMIN, &testbed, ("GET", EXEC), "websocket", &headers).await;
    assert_eq!(head.status, 101);
    let seen = Head::parse(&member.next_head().await);
    assert_eq!(without_spaces(&seen.values("sec-websocket-protocol")), "v5.channel.k8s.io,v4.channel.k8s.io");
}

async fn a_bad_bearer_subprotocol_is_unauthorized(dialect: Dialect) {
    let member = agreeable().await;
    let testbed = dialect.testbed(&member).await;
    for protocols in [
        format!("v5.channel.k8s.io, {BEARER_PROTOCOL}d3Jvbmc"),
        format!("v5.channel.k8s.io, {BEARER_PROTOCOL}%%%"),
        format!("v5.channel.k8s.io, {BEARER_PROTOCOL}{ADMIN_BASE64URL}, {BEARER_PROTOCOL}{ADMIN_BASE64URL}"),
    ] {
        let mut connection = dialect.client(&testbed).h1().await.unwrap();
        let headers = [("Sec-WebSocket-Protocol", protocols.as_str())];
        let head = connection.upgrade("GET", &dialect.path(EXEC), "websocket", &headers).await.unwrap();
        refusal((connection, head)).await.status_message(401, "Unauthorized");
    }
    assert_eq!(member.connection_count(), 0);
}

async fn the_member_is_asked_for_http_1_1_alone(dialect: Dialect) {
    // With HTTP/2 on offer this member would choose it, and HTTP/2 cannot carry an upgrade.
    let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let script = vec![Act::Tls(ALPN_BOTH), Act::ReadHead, Act::write(switching), Act::Hold];
    let member = RawMember::always(script).await;
    let testbed = dialect.testbed(&member).await;
    let (_connection, head) = upgrade(dialect, &testbed, "GET", EXEC, "websocket").await;
    assert_eq!(head.status, 101);
    assert_eq!(Head::parse(&member.next_head().await).line, format!("GET {EXEC} HTTP/1.1"));
}

fn without_spaces(values: &[&str]) -> String {
    values.join(",").replace(' ', "")
}
