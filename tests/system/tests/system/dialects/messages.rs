//! Headers, bodies, framing and credentials, as on the native path, and answers that are cut off.

use kit::member::BodyEnd;
use system_tests::Failure;
use system_tests::prelude::*;

use super::{ALICE, Fixture, hub};
use crate::proxying::{AMBIGUOUS, DROPPED, KEPT, RELAYED, statuses};
use crate::streaming::cuts;
use crate::upgrades::{EXEC, SPDY, refusal, upgrade_over};

across_dialects!(
    headers_arrive_as_they_were_sent_or_not_at_all,
    answers_without_a_body_have_none,
    a_member_reads_while_the_client_sends,
    leaving_during_an_upload_is_no_end_of_the_body,
    what_is_missing_is_noticed,
    a_request_hidden_in_a_body_reaches_nobody,
    headers_named_in_connection_neither_hide_an_identity_nor_drop_a_credential,
    a_rejected_credential_is_not_the_callers_fault,
    a_refused_upgrade_is_relayed_and_ends_its_connection,
);

async fn headers_arrive_as_they_were_sent_or_not_at_all(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.member.on("/x", |_| Reply::full(429, RELAYED, &b"\x1f\x8b not really"[..]));
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        let answer = connection.call("PATCH", &fixture.path("/x"), &[KEPT, DROPPED].concat(), b"{}").await;
        let request = fixture.member.next_request().await;
        for (name, _) in KEPT {
            let sent: Vec<_> = KEPT.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect();
            assert_eq!(request.header_values(name), sent, "{name}");
        }
        for (name, _) in DROPPED {
            assert_eq!(request.header(name), None, "{name}");
        }
        assert_eq!((answer.status, &answer.body[..]), (429, &b"\x1f\x8b not really"[..]));
        for (name, _) in RELAYED {
            let sent: Vec<_> = RELAYED.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect();
            assert_eq!(answer.headers.get_all(*name).iter().collect::<Vec<_>>(), sent, "{name}");
        }
    }
}

async fn answers_without_a_body_have_none(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.member.on("/head", |_| Reply::full(200, &[("content-length", "12")], ""));
    fixture.member.on("/204", |_| Reply::full(204, &[("x-a", "1")], ""));
    fixture.member.on("/304", |_| Reply::full(304, &[("etag", "\"1\"")], ""));
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        // Twice: a byte too many or too few shows in the next bytes on the connection.
        for _ in 0..2 {
            let answer = connection.call("HEAD", &fixture.path("/head"), &[], b"").await;
            assert_eq!((answer.status, answer.header("content-length"), answer.body.len()), (200, Some("12"), 0));
            let answer = connection.call("DELETE", &fixture.path("/204"), &[], b"").await;
            assert_eq!((answer.status, answer.header("content-length"), answer.body.len()), (204, None, 0));
            let answer = connection.get(&fixture.path("/304")).await;
            assert_eq!((answer.status, answer.header("etag"), answer.body.len()), (304, Some("\"1\""), 0));
        }
    }
}

async fn a_member_reads_while_the_client_sends(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        let target = fixture.path("/x");
        let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
        let request = fixture.member.next_request().await;
        for number in 1..=3 {
            upload.send("piece").await.expect("taken");
            request.body_reached(number * 5).await;
        }
        assert_eq!(upload.answer().await.expect("an answer").status, 200);
        assert_eq!((request.body_ended().await, request.body_bytes()), (BodyEnd::Complete, 15));
    }
}

async fn leaving_during_an_upload_is_no_end_of_the_body(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        let target = fixture.path("/x");
        let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
        upload.send("half").await.expect("taken");
        let request = fixture.member.next_request().await;
        request.body_reached(4).await;
        drop(upload);
        drop(connection);
        assert_eq!(request.body_ended().await, BodyEnd::Broken);
    }
}

async fn what_is_missing_is_noticed(dialect: Dialect) {
    let hub = hub().await;
    for (cut, script) in cuts() {
        let member = RawMember::always(script).await;
        hub.put_secret(cluster(CLUSTER, &member));
        let testbed = dialect.on(Testbed::builder().hub(&hub)).start().await;
        let mut connection = dialect.connect(&testbed, Http::H2).await.bearer(ALICE);
        match connection.try_call("GET", &dialect.path("/x"), &[], b"").await {
            Err(Failure::H1(_) | Failure::H2(_)) => {}
            // A reset can reach the gateway before it has read the head.
            Ok(answer) if cut.contains("reset") => assert_eq!(answer.status, 502, "{cut}"),
            Ok(answer) => panic!("{cut}: looks whole: {answer:?}"),
        }
    }
}

async fn a_request_hidden_in_a_body_reaches_nobody(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let head = |method: &str, rest: &str, lines: &str| {
        let target = fixture.path(rest);
        format!("{method} {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ALICE}\r\n{lines}\r\n")
    };
    let hidden = head("GET", "/hidden", "");
    for (case, lines, before) in AMBIGUOUS {
        let mut connection = dialect.client(&fixture.testbed).h1().await.expect("a connection");
        let request = head("POST", "/outer", lines) + before + &hidden;
        connection.send(request).await.expect("taken");
        let answered = statuses(&mut connection).await;
        assert!(answered.len() <= 1, "{case}: answered {answered:?}");
        let seen: Vec<_> = fixture.member.requests().into_iter().filter(|one| one.path() == "/hidden").collect();
        assert!(seen.is_empty(), "{case}: {seen:?}");
    }
}

async fn headers_named_in_connection_neither_hide_an_identity_nor_drop_a_credential(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let nominating = "Authorization, X-Remote-User,Via, X-Forwarded-For, Host, Impersonate-User";
    let headers = [("Connection", nominating), ("X-Remote-User", "admin"), ("x_remote_group", "system:masters")];
    let mut connection = fixture.connect(Http::H1).await;
    let answer = connection.call("GET", &fixture.path("/x"), &headers, b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let request = fixture.member.next_request().await;
    assert_eq!(request.header_values("authorization"), [format!("Bearer {MEMBER_TOKEN}")]);
    assert!(request.headers.keys().all(|name| !name.as_str().replace('_', "-").starts_with("x-remote-")));
    let acts_as = if dialect == Dialect::Karmada { Some("alice") } else { None };
    assert_eq!(request.header("impersonate-user"), acts_as);
    assert_eq!(request.authority, Some(fixture.member.address().to_string()));
}

async fn a_rejected_credential_is_not_the_callers_fault(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    fixture.member.on("/x", |_| Reply::status(401, "Unauthorized"));
    let mut connection = fixture.connect(Http::H2).await;
    let message = connection.get(&fixture.path("/x")).await.status_message(502, "InternalError");
    assert!(message.contains("rejected the registered credential"), "{message}");
}

async fn a_refused_upgrade_is_relayed_and_ends_its_connection(dialect: Dialect) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "no protocol in common", "reason": "Forbidden", "code": 403});
    let headers = "Content-Type: application/json\r\nX-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\n";
    let script = Act::refuse_upgrade("403 Forbidden", headers, &body.to_string());
    let member = RawMember::always(script).await;
    let hub = hub().await;
    hub.put_secret(cluster(CLUSTER, &member));
    let testbed = dialect.on(Testbed::builder().hub(&hub)).start().await;
    for (method, protocol) in [("GET", "websocket"), ("POST", SPDY)] {
        let target = dialect.path(EXEC);
        let asked = (method, target.as_str());
        let answer = refusal(upgrade_over(&dialect.client(&testbed), ALICE, asked, protocol, &[]).await).await;
        assert_eq!((answer.status, answer.json()), (403, body.clone()));
        assert_eq!(answer.header("x-accepted-stream-protocol-versions"), Some("v4.channel.k8s.io"));
    }
    let mut connection = dialect.client(&testbed).h1().await.expect("a connection");
    let authorization = format!("Bearer {ALICE}");
    let asked =
        connection.upgrade("GET", &dialect.path(EXEC), "h2c", &[("Authorization", authorization.as_str())]).await;
    assert_eq!(asked.expect("an answer").status, 400, "only protocols of Kubernetes pass");
}
