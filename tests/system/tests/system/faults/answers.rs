//! Answers of a member that are passed on as they are, and the few that are not: 401 and redirects.

use system_tests::prelude::*;

use super::assert_names_the_cluster;

across_http!(
    refusals_of_the_member_are_its_own_words,
    a_rejected_credential_is_not_the_callers_fault,
    a_workload_that_wants_a_password_says_so_itself,
    redirects_stay_below_the_proxy_path_or_end_here,
);

async fn refusals_of_the_member_are_its_own_words(http: Http) {
    let member = http.member().await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(http).await;
    for (code, reason) in [
        (400, "BadRequest"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "AlreadyExists"),
        (410, "Expired"),
        (413, "RequestEntityTooLarge"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ] {
        let status = json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "no"});
        let body = status.to_string();
        member.on("/x", move |_| {
            Reply::full(code, &[("content-type", "application/json"), ("retry-after", "3")], body.clone())
        });
        let answer = connection.call("POST", &proxied(CLUSTER, "/x"), &[], b"{}").await;
        assert_eq!((answer.status, answer.json(), answer.header("retry-after")), (code, status, Some("3")));
    }
    assert_eq!(member.request_count(), 11, "each was asked once");
}

async fn a_rejected_credential_is_not_the_callers_fault(http: Http) {
    let member = http.member().await;
    member.on("/x", |_| Reply::full(401, &[("www-authenticate", "Bearer"), ("retry-after", "1")], "Unauthorized"));
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(http).await;
    for (method, body) in [("GET", &b""[..]), ("POST", b"{}")] {
        let answer = connection.call(method, &proxied(CLUSTER, "/x"), &[], body).await;
        let message = assert_names_the_cluster(&answer, 502, "InternalError");
        assert!(message.contains("credential") && message.contains("Secret"), "{message}");
        assert_eq!(answer.header("www-authenticate"), None);
    }
    assert_eq!(member.request_count(), 2);
}

async fn a_workload_that_wants_a_password_says_so_itself(http: Http) {
    let member = http.member().await;
    let (page, status) = ("<h1>password?</h1>", json!({"kind": "Status", "apiVersion": "v1", "code": 401}).to_string());
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(http).await;
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/services/grafana/proxy/login");
    let basic = ("www-authenticate", "Basic realm=\"grafana\"");
    let body_of = move |method: &str| if method == "HEAD" { "" } else { page };
    member.on_any(move |request| {
        Reply::full(401, &[basic, ("content-type", "text/html")], body_of(request.method.as_str()))
    });
    for (method, body) in [("GET", &b""[..]), ("POST", b"{}"), ("HEAD", b"")] {
        let answer = connection.call(method, &target, &[], body).await;
        assert_eq!((answer.status, answer.header(basic.0)), (401, Some(basic.1)), "{method}");
        assert_eq!(answer.text(), body_of(method));
    }
    // The member itself, on the way there.
    member.on_any(move |_| Reply::full(401, &[("content-type", "application/json")], status.clone()));
    let answer = connection.get(&target).await;
    let message = assert_names_the_cluster(&answer, 502, "InternalError");
    assert!(message.contains("rejected the registered credential"), "{message}");
    assert_eq!(member.request_count(), 4);
}

async fn redirects_stay_below_the_proxy_path_or_end_here(http: Http) {
    let member = http.member().await;
    let elsewhere = Http::H2.member().await;
    let (base, other) = (member.url(), elsewhere.url());
    let secret = ClusterSecret::new("vela-system", CLUSTER)
        .endpoint(&format!("{base}/base"))
        .ca(&member.ca_pem())
        .token(MEMBER_TOKEN);
    let testbed = Testbed::builder().cluster(CLUSTER, secret).start().await;
    let mut connection = testbed.connect(http).await;
    let mut redirected = async |code: u16, location: String| {
        member.on_any(move |_| Reply::full(code, &[("location", &location)], ""));
        connection.get(&proxied(CLUSTER, "/x")).await
    };
    for (code, location) in [
        (301, "/base/y?a=%2F".to_owned()),
        (302, format!("{base}/base/y?a=%2F")),
        (307, "/base/y?a=%2F".to_owned()),
        (308, format!("{base}/base/y?a=%2F")),
    ] {
        let answer = redirected(code, location).await;
        let below = proxied(CLUSTER, "/y?a=%2F");
        assert_eq!((answer.status, answer.header("location")), (code, Some(below.as_str())));
    }
    for location in [
        format!("{other}/base/y"),
        format!("//{}/base/y", elsewhere.address()),
        format!("/\\{}/base/y", elsewhere.address()),
        "https://evil.example/base/".to_owned(),
        base.replace("https", "http") + "/base/y",
        "/y".to_owned(),
    ] {
        let answer = redirected(302, location.clone()).await;
        assert_names_the_cluster(&answer, 502, "InternalError");
        assert_eq!(answer.header("location"), None, "{location}");
    }
    assert_eq!((member.request_count(), elsewhere.connections_accepted()), (10, 0), "no redirect is followed");
}
