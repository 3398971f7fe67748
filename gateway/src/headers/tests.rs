use super::*;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn forwarded(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = headers(lines);
    to_member(&mut headers, &HeaderValue::from_static("192.0.2.7")).unwrap();
    headers
}

#[test]
fn no_spelling_of_an_identity_crosses() {
    let sent = forwarded(&[
        ("Authorization", "Bearer secret"),
        ("Cookie", "session=1"),
        ("X-Remote-User", "admin"),
        ("x-remote-extra-scopes", "all"),
        ("X_Remote_Group", "system:masters"),
        ("Impersonate-User", "system:admin"),
        ("IMPERSONATE-GROUP", "system:masters"),
        ("Impersonate-Extra-x", "1"),
        ("Impersonate_Uid", "0"),
        ("Proxy-Authorization", "Basic x"),
        ("Accept", "application/json"),
    ]);
    let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "via", "x-forwarded-for"]);
}

#[test]
fn what_connection_names_is_removed_in_every_form_of_the_list() {
    for lines in [
        vec![("Connection", "close, X-Secret ,x-other")],
        vec![("Connection", ""), ("Connection", "X-Secret"), ("connection", " x-OTHER ,")],
        vec![("Connection", "Upgrade, X-Secret,X-Other")],
    ] {
        let mut all = lines.clone();
        all.extend([("X-Secret", "1"), ("X-Other", "2"), ("X-Kept", "3")]);
        let sent = forwarded(&all);
        assert!(!sent.contains_key("x-secret") && !sent.contains_key("x-other"), "{lines:?}");
        assert!(sent.contains_key("x-kept") && !sent.contains_key("connection"), "{lines:?}");
    }
}

#[test]
fn content_headers_cross_untouched() {
    let lines = [
        ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
        ("accept-encoding", "gzip"),
        ("content-type", "application/apply-patch+yaml"),
        ("if-none-match", "\"abc\""),
        ("kubectl-session", "1"),
        ("range", "bytes=0-1"),
        ("audit-id", "x"),
        ("traceparent", "00-1-2-01"),
    ];
    let sent = forwarded(&lines);
    for (name, value) in lines {
        assert_eq!(sent[name], value);
    }
}

#[test]
fn te_crosses_only_as_trailers() {
    assert_eq!(forwarded(&[("te", "gzip, Trailers")])["te"], "trailers");
    assert_eq!(forwarded(&[("connection", "te"), ("te", "trailers")])["te"], "trailers");
    assert!(!forwarded(&[("te", "gzip")]).contains_key("te"));
}

#[test]
fn the_forwarding_chain_is_extended_in_one_line() {
    let sent = forwarded(&[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "198.51.100.2")]);
    assert_eq!(sent["x-forwarded-for"], "198.51.100.1, 198.51.100.2, 192.0.2.7");
    assert_eq!(sent.get_all("x-forwarded-for").iter().count(), 1);
}

#[test]
fn a_request_that_keeps_coming_back_is_a_loop() {
    let mut headers = headers(&[("via", "1.1 corporate-proxy")]);
    let client = &HeaderValue::from_static("192.0.2.7");
    for _ in 0..MAX_HOPS {
        to_member(&mut headers, client).unwrap();
    }
    assert_eq!(to_member(&mut headers, client), Err(TooManyHops));
}

#[test]
fn members_set_no_cookies_and_advertise_no_other_address() {
    let mut answer = headers(&[
        ("set-cookie", "a=b"),
        ("alt-svc", "h3=\":443\""),
        // A worker from one cluster's page would serve all clusters' pages.
        ("service-worker-allowed", "/"),
        ("clear-site-data", "\"*\""),
        ("report-to", "{}"),
        ("nel", "{}"),
        ("connection", "close, x-hop"),
        ("x-hop", "1"),
        ("warning", "299 - \"one\""),
        ("warning", "299 - \"two\""),
        ("audit-id", "x"),
        ("content-length", "7"),
    ]);
    to_client(&mut answer);
    let mut names: Vec<_> = answer.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["audit-id", "content-length", "warning"]);
    assert_eq!(answer.get_all("warning").iter().count(), 2);
}
