//! Ten thousand requests in Karmada's spelling cost the member no connections, and the gateway no
//! memory: Karmada's own server shakes hands with the member for each.

use std::process::Command;

use system_tests::prelude::*;

use super::Fixture;

/// The version of HTTP that a member speaks at best, and requests to it. Fewer for HTTP/1.1, which
/// no API server prefers.
const REQUESTS: [(Http, usize); 2] = [(Http::H2, 10_000), (Http::H1, 5_000)];
/// Before them: what is kept only once is kept by then.
const BEFORE: usize = 2_000;
/// Requests that the member remembers, which is in this process too.
const REMEMBERED: usize = 100;
/// Connections of clients; a core that serves one of them opens its own connection to the member.
const CONNECTIONS: usize = 4;
/// Freed memory that an allocator may keep, in bytes, however many requests there were. A kilobyte
/// that is kept for each of ten thousand would be five times as much, and a connection a hundred
/// times; half of that for each of five thousand.
const FLAT: u64 = 2 << 20;
/// Says that this process is the one that is measured.
const ALONE: &str = "MANY_REQUESTS_ALONE";

#[test]
fn ten_thousand_requests_are_no_more_connections_and_no_more_memory() {
    if std::env::var_os(ALONE).is_none() {
        // In a process of its own: what other tests have in memory is not its.
        let name = "dialects::many::ten_thousand_requests_are_no_more_connections_and_no_more_memory";
        let program = std::env::current_exe().expect("it runs");
        let mut alone = Command::new(program);
        let ended = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "yes").status().expect("it starts");
        assert!(ended.success(), "{ended}");
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    for (http, requests) in REQUESTS {
        runtime.block_on(are_no_more(http, requests));
    }
}

async fn are_no_more(http: Http, requests: usize) {
    let options = MemberOptions { remembered: REMEMBERED, ..http.member_options() };
    let fixture = Fixture::before(Dialect::Karmada, FakeMember::start(options).await).await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(fixture.connect(Http::H2).await);
    }
    ask(&fixture, &mut connections, BEFORE).await;
    let (opened, before) = (fixture.member.connections_accepted(), resident());
    assert!(opened <= CONNECTIONS, "{http:?}: {opened} connections");
    ask(&fixture, &mut connections, requests).await;
    assert_eq!(fixture.member.connections_accepted(), opened, "{http:?}");
    assert_eq!(fixture.member.connections_open(), opened, "{http:?}");
    let more = resident().saturating_sub(before);
    assert!(more < FLAT, "{http:?}: {more} bytes more after {requests} requests");
}

/// `requests` in all, one after the other on each connection.
async fn ask(fixture: &Fixture, connections: &mut [Connection], requests: usize) {
    let path = fixture.path("/api/v1/pods");
    let (before, each) = (fixture.member.request_count(), requests / connections.len());
    let all = connections.iter_mut().map(async |connection| {
        for _ in 0..each {
            let answer = connection.get(&path).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    futures_util::future::join_all(all).await;
    assert_eq!(fixture.member.request_count() - before, requests, "reached the member");
}

/// Bytes of this process that are in memory (`VmRSS` of proc(5)).
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("every process has one");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("in it");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}
