//! A member's redirect must not lead a client out of the proxy path, where its hub credential means something else.

use kit::member::Reply;
use system_tests::{CLUSTER, Http, Rig, across_http, proxied};

use super::assert_names_the_cluster;

across_http!(a_redirect_with_dot_segments_ends_here);

async fn a_redirect_with_dot_segments_ends_here(client: Http) {
    let member = Http::H2.member().await;
    let rig = Rig::with(&member).await;
    let mut connection = rig.connect(client).await;
    // Clients resolve these against the request's URL (RFC 3986 section 5.2.4), and end on the hub's own paths.
    let escape = "/../../../../../../api/v1/secrets".to_owned();
    for location in [escape.clone(), member.url() + &escape, "/a/%2e%2E/..".to_owned(), "/..\\x".to_owned()] {
        let told = location.clone();
        member.on_any(move |_| Reply::full(307, &[("location", &told)], ""));
        let answer = connection.get(&proxied(CLUSTER, "/x")).await;
        assert_eq!(answer.header("location"), None, "{location}");
        assert_names_the_cluster(&answer, 502, "InternalError");
    }
}
