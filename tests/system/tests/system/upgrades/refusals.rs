//! Failed upgrades: refused by the member, by the gateway, or never heard of.

use kit::pki::{ALPN_H1, ALPN_H2};
use kit::wait::free_port;
use system_tests::prelude::*;

use super::{EXEC, SPDY, refusal, upgrade, upgrade_as, upgrade_over};

across_dialects!(
    the_members_refusal_is_relayed_and_ends_both_connections,
    a_workload_that_wants_a_password_says_so_itself,
    a_head_too_large_for_the_member_does_not_reach_it,
    a_second_request_behind_a_refused_upgrade_reaches_nobody,
    an_answer_that_neither_upgrades_nor_refuses_is_a_bad_gateway,
    half_a_refusal_is_not_passed_off_as_a_whole_one,
    a_rejected_credential_is_not_the_callers_fault,
    unknown_protocols_are_refused_here,
    an_upgrade_without_a_protocol_is_answered_as_an_api_server_does,
    a_chunked_upgrade_is_refused,
    paths_that_take_no_upgrade_say_so,
    an_unreachable_member_is_named,
    a_member_without_http_1_1_or_without_an_answer_is_named,
);

async fn the_members_refusal_is_relayed_and_ends_both_connections(dialect: Dialect) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "unable to upgrade: no protocol in common", "reason": "Forbidden", "code": 403});
    let body = status.to_string();
    let headers = "Content-Type: application/json\r\nAudit-Id: a1\r\nWarning: 299 - \"old\"\r\n\
                   X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\n";
    let chunked = format!(
        "HTTP/1.1 403 Forbidden\r\n{headers}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for script in [Act::refuse_upgrade("403 Forbidden", headers, &body), Act::answer(chunked, Act::ReadToEnd)] {
        let member = RawMember::always(script).await;
        let testbed = dialect.testbed(&member).await;
        let answer = refusal(upgrade(dialect, &testbed, "POST", EXEC, SPDY).await).await;
        assert_eq!(answer.status_message(403, "Forbidden"), "unable to upgrade: no protocol in common");
        assert_eq!(answer.json(), status);
        assert_eq!(answer.header("x-accepted-stream-protocol-versions"), Some("v4.channel.k8s.io"));
        assert_eq!((answer.header("audit-id"), answer.header("warning")), (Some("a1"), Some("299 - \"old\"")));
        member.until(0, |connection| connection.caller_closed).await;
    }
}

async fn a_workload_that_wants_a_password_says_so_itself(dialect: Dialect) {
    let member = RawMember::always(Act::refuse_upgrade(
        "401 Unauthorized",
        "WWW-Authenticate: Basic realm=\"grafana\"\r\nContent-Type: text/plain\r\n",
        "password?",
    ))
    .await;
    let testbed = dialect.testbed(&member).await;
    let target = "/api/v1/namespaces/ns/services/grafana/proxy/live";
    let answer = refusal(upgrade(dialect, &testbed, "GET", target, "websocket").await).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Basic realm=\"grafana\"")));
    assert_eq!(answer.text(), "password?");
    // Only the member answers an exec.
    let answer = refusal(upgrade(dialect, &testbed, "GET", EXEC, "websocket").await).await;
    assert!(answer.status_message(502, "InternalError").contains("rejected the registered credential"));
}

async fn a_head_too_large_for_the_member_does_not_reach_it(dialect: Dialect) {
    let member = RawMember::always(Act::refuse_upgrade("403 Forbidden", "", "")).await;
    let testbed = dialect.testbed(&member).await;
    let large = "x".repeat(600 << 10);
    let headers = [("x-large", large.as_str())];
    let answer = refusal(upgrade_as(dialect, ADMIN, &testbed, ("GET", EXEC), "websocket", &headers).await).await;
    assert!(answer.status_message(431, "BadRequest").contains("512 KiB"), "{}", answer.text());
    assert_eq!(member.connection_count(), 0);
}

async fn a_second_request_behind_a_refused_upgrade_reaches_nobody(dialect: Dialect) {
    // A proxy that takes the connection for a tunnel after anything but 101 lets its client speak
    // with the member's credential (CVE-2018-1002105).
    let member = RawMember::always(Act::refuse_upgrade("403 Forbidden", "", "")).await;
    let testbed = dialect.testbed(&member).await;
    let target = dialect.path(EXEC);
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer {ADMIN}\r\n\r\n\
         GET /api/v1/secrets HTTP/1.1\r\nHost: localhost\r\n\r\n"
    );
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    connection.send(head).await.unwrap();
    let head = connection.head().await.unwrap();
    assert_eq!(refusal((connection, head)).await.status, 403);
    let seen = member.until(0, |connection| connection.caller_closed).await;
    assert_eq!((seen.heads.len(), member.connection_count()), (1, 1));
}

async fn an_answer_that_neither_upgrades_nor_refuses_is_a_bad_gateway(dialect: Dialect) {
    let elsewhere = RawMember::always(Act::silent()).await;
    let location = format!("Location: {}/other\r\n", elsewhere.url());
    for status in ["200 OK", "204 No Content", "301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let member = RawMember::always(Act::refuse_upgrade(status, &location, "")).await;
        let testbed = dialect.testbed(&member).await;
        let answer = refusal(upgrade(dialect, &testbed, "GET", EXEC, "websocket").await).await;
        let message = answer.status_message(502, "InternalError");
        assert!(message.contains(CLUSTER) && message.contains(&status[..3]), "{message}");
        assert_eq!((answer.header("location"), answer.header("retry-after")), (None, None), "{status}");
        assert_eq!(member.connection_count(), 1, "{status}");
    }
    assert_eq!(elsewhere.connection_count(), 0, "redirects are not followed");
}

async fn half_a_refusal_is_not_passed_off_as_a_whole_one(dialect: Dialect) {
    let body = "x".repeat(3 << 20);
    let member = RawMember::always(Act::refuse_upgrade("404 Not Found", "Content-Type: text/html\r\n", &body)).await;
    let testbed = dialect.testbed(&member).await;
    let answer =
        refusal(upgrade(dialect, &testbed, "GET", "/api/v1/namespaces/ns/services/s/proxy/x", "websocket").await).await;
    let message = answer.status_message(502, "InternalError");
    assert!(message.contains("its refusal of the upgrade has more than 1024 KiB"), "{message}");
}

async fn a_rejected_credential_is_not_the_callers_fault(dialect: Dialect) {
    let member = RawMember::always(Act::refuse_upgrade("401 Unauthorized", "", "")).await;
    let testbed = dialect.testbed(&member).await;
    let answer = refusal(upgrade(dialect, &testbed, "GET", EXEC, "websocket").await).await;
    let message = answer.status_message(502, "InternalError");
    assert!(message.contains(CLUSTER) && message.contains("Secret"), "{message}");
}

async fn unknown_protocols_are_refused_here(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("h2c", b"")).await;
    let testbed = dialect.testbed(&member).await;
    for protocol in
        ["h2c", "TLS/1.0", "HTTP/2.0", "websocket, h2c", "h2c, websocket", "SPDY/3", "websocket\r\nUpgrade: h2c"]
    {
        let answer = refusal(upgrade(dialect, &testbed, "GET", "/api/v1/pods", protocol).await).await;
        answer.status_message(400, "BadRequest");
    }
    assert_eq!(member.connection_count(), 0);
}

async fn an_upgrade_without_a_protocol_is_answered_as_an_api_server_does(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = dialect.testbed(&member).await;
    let authorization = format!("Bearer {ADMIN}");
    let headers = [("Connection", "Upgrade"), ("Authorization", authorization.as_str())];
    let mut connection = dialect.client(&testbed).h1().await.unwrap();
    connection.request("GET", &dialect.path(EXEC), &headers, b"").await.unwrap();
    let head = connection.head().await.unwrap();
    let message = refusal((connection, head)).await.status_message(400, "BadRequest");
    assert_eq!(message, "Upgrade request required");
    assert_eq!(member.connection_count(), 0);
}

async fn a_chunked_upgrade_is_refused(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade(SPDY, b"")).await;
    let testbed = dialect.testbed(&member).await;
    let chunked = [("Transfer-Encoding", "chunked")];
    let asked = upgrade_as(dialect, ADMIN, &testbed, ("POST", EXEC), SPDY, &chunked).await;
    refusal(asked).await.status_message(400, "BadRequest");
    assert_eq!(member.connection_count(), 0);
}

async fn paths_that_take_no_upgrade_say_so(dialect: Dialect) {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = dialect.testbed(&member).await;
    let answer = refusal(upgrade(dialect, &testbed, "GET", "/a/..%2fb", "websocket").await).await;
    answer.status_message(400, "BadRequest");
    // The gateway's own, which no dialect spells.
    let asked = upgrade_over(&testbed.client(), ADMIN, ("GET", "/apis"), "websocket", &[]).await;
    refusal(asked).await.status_message(400, "BadRequest");
    let unknown = dialect.path_of("nowhere", EXEC);
    let asked = upgrade_over(&dialect.client(&testbed), ADMIN, ("GET", &unknown), "websocket", &[]).await;
    let answer = refusal(asked).await;
    assert!(answer.status_message(404, "NotFound").contains("no such cluster"));
    assert_eq!(member.connection_count(), 0);
}

async fn an_unreachable_member_is_named(dialect: Dialect) {
    let member = RawMember::always(Act::silent()).await;
    let dead = cluster(CLUSTER, &member).endpoint(&format!("https://127.0.0.1:{}", free_port().await));
    let testbed = dialect.on(Testbed::builder().cluster(CLUSTER, dead)).start().await;
    let answer = refusal(upgrade(dialect, &testbed, "GET", EXEC, "websocket").await).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(message.contains("dial tcp") && message.contains(CLUSTER), "{message}");
    assert_eq!(answer.json()["details"]["name"], CLUSTER);
}

async fn a_member_without_http_1_1_or_without_an_answer_is_named(dialect: Dialect) {
    let scripts = [
        (vec![Act::Tls(ALPN_H2), Act::Hold], 503, "ServiceUnavailable"),
        (Act::reset_after_head(), 502, "InternalError"),
        (Act::close_after_head(), 502, "InternalError"),
        (vec![Act::Tls(ALPN_H1), Act::ReadHead, Act::write("SPDY?\r\n\r\n"), Act::Close], 502, "InternalError"),
    ];
    for (script, code, reason) in scripts {
        let member = RawMember::always(script).await;
        let testbed = dialect.testbed(&member).await;
        let answer = refusal(upgrade(dialect, &testbed, "POST", EXEC, SPDY).await).await;
        assert!(answer.status_message(code, reason).contains(CLUSTER));
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(member.connection_count(), 1, "an upgrade is never tried twice");
    }
}
