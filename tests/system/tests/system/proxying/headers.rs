//! Which headers cross, both ways. Hop-by-hop ends at the gateway; everything else passes as it is.

use system_tests::prelude::*;

use super::agreeable;

across_versions!(a_clients_headers_arrive, a_members_headers_arrive);
across_http!(hop_by_hop_headers_of_a_client_end_here);

/// Header lines of real clients, which a member has to see as they were sent.
pub(crate) const KEPT: &[(&str, &str)] = &[
    ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
    ("accept-encoding", "gzip, br;q=0.5"),
    ("content-type", "application/apply-patch+yaml; charset=utf-8"),
    ("content-encoding", "gzip"),
    ("if-none-match", "\"etag\""),
    ("user-agent", "kubectl/v1.33.0 (linux/amd64)"),
    ("audit-id", "9f0f4c1e"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("tracestate", "a=1"),
    ("baggage", "k=v"),
    ("kubectl-command", "kubectl apply"),
    ("range", "bytes=0-9"),
    ("x-anything", "one, two"),
    ("x-anything", "J\u{f6}rg"),
    ("x-empty", ""),
];

/// Header lines that are about the connection to us, or would name an identity.
pub(crate) const DROPPED: &[(&str, &str)] = &[
    ("cookie", "session=1"),
    ("expect", "200-maybe"),
    ("forwarded", "for=1.2.3.4"),
    ("x-forwarded-host", "evil.example"),
    ("x-forwarded-proto", "http"),
    ("x-forwarded-uri", "/evil"),
    ("proxy-authorization", "Basic eDp5"),
    ("proxy-authenticate", "Basic"),
    ("trailer", "x-sum"),
];

/// Header lines of members that clients rely on.
pub(crate) const RELAYED: &[(&str, &str)] = &[
    ("content-type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("content-encoding", "gzip"),
    ("etag", "\"1\""),
    ("vary", "Accept"),
    ("cache-control", "no-cache, private"),
    ("last-modified", "Sat, 01 Nov 2025 00:00:00 GMT"),
    ("warning", "299 - \"deprecated\""),
    ("warning", "299 - \"also unwise: \u{fc}\""),
    ("audit-id", "9f0f4c1e"),
    ("x-kubernetes-pf-flowschema-uid", "a"),
    ("x-kubernetes-pf-prioritylevel-uid", "b"),
    ("deprecation", "true"),
    ("retry-after", "7"),
];

async fn a_clients_headers_arrive(versions: Versions) {
    let member = agreeable(versions.member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(versions.client).await;
    let forwarded = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2, 192.0.2.3")];
    let headers = [KEPT, DROPPED, &forwarded].concat();
    connection.call("PATCH", &proxied(CLUSTER, "/x"), &headers, b"{}").await;
    let request = member.next_request().await;
    for (name, _) in KEPT {
        let sent: Vec<_> = KEPT.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect();
        assert_eq!(request.header_values(name), sent, "{name}");
    }
    for (name, _) in DROPPED {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!(request.header_values("x-forwarded-for"), ["192.0.2.1, 192.0.2.2, 192.0.2.3, 127.0.0.1"]);
    assert_eq!(request.authority, Some(member.address().to_string()), "the Host is the member's own");
}

#[tokio::test]
async fn nothing_is_added_that_a_client_did_not_ask_for() {
    let member = agreeable(Http::H1).await;
    let testbed = Testbed::with(&member).await;
    testbed.get(&proxied(CLUSTER, "/x")).await;
    let mut names: Vec<_> = member.next_request().await.headers.keys().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["authorization", "host", "via", "x-forwarded-for"]);
}

async fn hop_by_hop_headers_of_a_client_end_here(member: Http) {
    let member = agreeable(member).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H1).await;
    let headers = [
        ("Connection", ""),
        ("Connection", " keep-alive , X-Drop,x-drop-too"),
        ("Connection", "Te, ,Keep-Alive"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
        ("Upgrade", "h2c"),
        ("TE", "gzip, trailers"),
        ("X-Drop", "1"),
        ("X-Drop-Too", "1"),
        ("X-Keep", "1"),
    ];
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &headers, b"").await;
    assert_eq!(answer.status, 200);
    let request = member.next_request().await;
    for name in ["connection", "keep-alive", "proxy-connection", "http2-settings", "upgrade", "x-drop", "x-drop-too"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!((request.header("te"), request.header("x-keep")), (Some("trailers"), Some("1")));
    assert_eq!(connection.get(&proxied(CLUSTER, "/y")).await.status, 200, "the connection goes on");
}

async fn a_members_headers_arrive(versions: Versions) {
    let member = versions.member.member().await;
    let stay = [
        ("set-cookie", "session=1"),
        ("set-cookie", "other=2"),
        ("alt-svc", "h3=\":443\""),
        ("strict-transport-security", "max-age=31536000"),
        ("proxy-authenticate", "Basic"),
    ];
    let headers = [RELAYED, &stay].concat();
    member.on_any(move |_| Reply::full(429, &headers, &b"\x1f\x8b not really"[..]));
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(versions.client).await.get(&proxied(CLUSTER, "/x")).await;
    assert_eq!((answer.status, &answer.body[..]), (429, &b"\x1f\x8b not really"[..]), "nothing is unpacked");
    for (name, _) in RELAYED {
        let sent: Vec<_> = RELAYED.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect();
        assert_eq!(answer.headers.get_all(*name).iter().collect::<Vec<_>>(), sent, "{name}");
    }
    for (name, _) in stay {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("content-length"), Some("13"));
}

#[tokio::test]
async fn hop_by_hop_headers_of_a_member_end_here() {
    let member = FakeMember::start(Http::H1.member_options()).await;
    let headers = [
        ("connection", "X-Secret, keep-alive"),
        ("x-secret", "1"),
        ("keep-alive", "timeout=5"),
        ("upgrade", "h2c"),
        ("x-kept", "1"),
    ];
    member.on_any(move |_| Reply::full(200, &headers, "ok"));
    let testbed = Testbed::with(&member).await;
    for http in [Http::H1, Http::H2] {
        let answer = within(WAIT, "an answer", testbed.connect(http).await.get(&proxied(CLUSTER, "/x"))).await;
        for name in ["connection", "x-secret", "keep-alive", "upgrade"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
        assert_eq!((answer.status, answer.header("x-kept")), (200, Some("1")));
    }
}

#[tokio::test]
async fn a_gateway_that_registers_itself_ends_in_an_error() {
    let member = agreeable(Http::H2).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    let via = |hops: usize| vec!["2.0 cluster-gateway"; hops].join(", ");
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &[("via", &via(7))], b"").await;
    assert_eq!(answer.status, 200, "hubs of hubs are fine");
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &[("via", &via(8))], b"").await;
    assert!(answer.status_message(508, "InternalError").contains(CLUSTER));
    assert_eq!(member.request_count(), 1);
}
