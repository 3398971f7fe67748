//! A member's redirect must not lead a client out of the proxy path, where its hub credential means
//! something else.

use kit::member::Reply;
use system_tests::{CLUSTER, Http, Testbed, across_http, proxied};

use super::assert_names_the_cluster;

across_http!(
    a_redirect_with_dot_segments_ends_here,
    a_redirect_that_browsers_read_otherwise_ends_here,
    a_location_beside_an_answer_stays_below_the_proxy_path_or_is_left_out,
);

async fn a_redirect_with_dot_segments_ends_here(client: Http) {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    // Clients resolve these against the request's URL (RFC 3986 section 5.2.4), and end on the
    // hub's own paths.
    let escape = "/../../../../../../api/v1/secrets".to_owned();
    for location in [escape.clone(), member.url() + &escape, "/a/%2e%2E/..".to_owned(), "/..\\x".to_owned()] {
        let told = location.clone();
        member.on_any(move |_| Reply::full(307, &[("location", &told)], ""));
        let answer = connection.get(&proxied(CLUSTER, "/x")).await;
        assert_eq!(answer.header("location"), None, "{location}");
        assert_names_the_cluster(&answer, 502, "InternalError");
    }
}

async fn a_redirect_that_browsers_read_otherwise_ends_here(client: Http) {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    // They take tabs out before they look (WHATWG URL Standard, basic URL parser, step 3), and `\`
    // for `/`.
    for location in ["/\t/evil.example/", "/a/.\t./.\t./b", "/a/\t..\t/b", "/a b", "/a\\b", "/a/%2e\t%2E/b"] {
        member.on_any(move |_| Reply::full(307, &[("location", location)], ""));
        let answer = connection.get(&proxied(CLUSTER, "/x")).await;
        assert_eq!(answer.header("location"), None, "{location:?}");
        assert_names_the_cluster(&answer, 502, "InternalError");
    }
}

async fn a_location_beside_an_answer_stays_below_the_proxy_path_or_is_left_out(client: Http) {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    for (location, told) in [
        ("/api/v1/jobs/7".to_owned(), Some(proxied(CLUSTER, "/api/v1/jobs/7"))),
        (member.url() + "/jobs/7", Some(proxied(CLUSTER, "/jobs/7"))),
        ("https://elsewhere.example/".to_owned(), None),
        ("/../../x".to_owned(), None),
    ] {
        let shown = location.clone();
        member.on_any(move |_| Reply::full(201, &[("location", &location), ("refresh", "0;url=/api")], "made"));
        let answer = connection.call("POST", &proxied(CLUSTER, "/jobs"), &[], b"{}").await;
        assert_eq!((answer.status, answer.text().as_str()), (201, "made"), "{shown}");
        assert_eq!((answer.header("location"), answer.header("refresh")), (told.as_deref(), None), "{shown}");
    }
}
