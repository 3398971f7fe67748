//! Methods, paths and queries, as on the native path: raw bytes in, the same bytes out.

use system_tests::prelude::*;

use super::Fixture;
use crate::proxying::{DOTTED, TARGETS};

across_dialects!(
    paths_and_queries_arrive_byte_for_byte,
    every_method_arrives,
    the_empty_path_is_the_members_root,
    dot_segments_are_refused_in_every_spelling,
    what_stands_in_front_of_the_member_may_have_a_base_path,
);

async fn paths_and_queries_arrive_byte_for_byte(dialect: Dialect) {
    for member in [Http::H1, Http::H2] {
        let fixture = Fixture::with(dialect, member).await;
        for client in [Http::H1, Http::H2] {
            let mut connection = fixture.connect(client).await;
            for target in TARGETS {
                assert_eq!(connection.get(&fixture.path(target)).await.status, 200, "{target}");
                assert_eq!(fixture.member.next_request().await.target, *target);
            }
        }
    }
}

async fn every_method_arrives(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut connection = fixture.connect(Http::H2).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let body: &[u8] = if matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") { b"{}" } else { b"" };
        let answer = connection.call(method, &fixture.path("/api/v1/pods"), &[], body).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.text());
        let request = fixture.member.next_request().await;
        assert_eq!((request.method.as_str(), request.path(), &request.body()[..]), (method, "/api/v1/pods", body));
    }
    assert_eq!(fixture.member.connections_accepted(), 1, "one connection carries them all");
    let answer = connection.call("TRACE", &fixture.path("/api/v1/pods"), &[], b"").await;
    answer.status_message(405, "MethodNotAllowed");
}

async fn the_empty_path_is_the_members_root(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut connection = fixture.connect(Http::H1).await;
    for (sent, arrives) in [("", "/"), ("/", "/"), ("?", "/?"), ("?a=1", "/?a=1"), ("//", "//")] {
        assert_eq!(connection.get(&fixture.path(sent)).await.status, 200, "{sent}");
        assert_eq!(fixture.member.next_request().await.target, arrives);
    }
}

async fn dot_segments_are_refused_in_every_spelling(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        for target in DOTTED {
            connection.get(&fixture.path(target)).await.status_message(400, "BadRequest");
        }
    }
    assert_eq!((fixture.member.request_count(), fixture.member.connections_accepted()), (0, 0));
}

async fn what_stands_in_front_of_the_member_may_have_a_base_path(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let endpoint = format!("{}/clusters/root%3Ax", fixture.member.url());
    let secret = ClusterSecret::new("vela-system", "based").endpoint(&endpoint).ca(&fixture.member.ca_pem());
    fixture.hub.put_secret(secret.token(MEMBER_TOKEN));
    let mut connection = fixture.connect(Http::H2).await;
    let target = dialect.path_of("based", "//a%2Fb/?x=1");
    connection.until(WAIT, &target, |answer| answer.status == 200).await;
    assert_eq!(fixture.member.next_request().await.target, "/clusters/root%3Ax//a%2Fb/?x=1");
}
