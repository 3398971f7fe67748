//! Callers as members see them: whole, however large they are, and never as another user.

use system_tests::prelude::*;

use super::{Fixture, PATH, acted_as, lines, target};

const GATE: &str = "--feature-gates=ClientIdentityPenetration=true";
/// Groups of a user who is in very many.
const GROUPS: usize = 600;

across_http!(callers_cross_with_all_they_are, crowded_users_cross_whole);

async fn callers_cross_with_all_they_are(http: Http) {
    let fixture = Fixture::with(http, &[GATE]).await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(http).await;
    let identity = [
        ("X-Remote-User", "jörg"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Example.com%2fscopes", "read"),
        ("X-Remote-Extra-Example.com%2fscopes", "write"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fpod-name", "p"),
    ];
    assert_eq!(connection.call("PUT", &target(), &identity, b"{}").await.status, 200);
    let expected = lines(&[
        ("user", "jörg"),
        ("group", "dev"),
        ("group", "system:authenticated"),
        ("uid", "u-1"),
        ("extra-example.com%2fscopes", "read"),
        ("extra-example.com%2fscopes", "write"),
    ]);
    let request = fixture.member.next_request().await;
    assert_eq!(acted_as(&request), expected);
    assert_eq!(request.header("authorization"), Some("Bearer member-token"));
}

async fn crowded_users_cross_whole(http: Http) {
    let fixture = Fixture::with(http, &[GATE]).await;
    fixture.hub.allow_all();
    let groups: Vec<_> = (0..GROUPS).map(|number| format!("organization:department-{number:04}:engineers")).collect();
    let names: Vec<_> = groups.iter().map(String::as_str).collect();
    fixture.hub.add_token("janes-token", TokenUser::new("jane", &names));

    let mut connection = fixture.front_proxy(http).await;
    let mut identity = vec![("X-Remote-User", "jane")];
    identity.extend(names.iter().map(|name| ("X-Remote-Group", *name)));
    assert_eq!(connection.call("GET", &target(), &identity, b"").await.status, 200);
    let behind_the_hub = fixture.member.next_request().await.header_values("impersonate-group");
    let mut connection = fixture.connect(http, None).await.bearer("janes-token");
    assert_eq!(connection.get(&target()).await.status, 200);
    let direct = fixture.member.next_request().await.header_values("impersonate-group");
    for mut seen in [behind_the_hub, direct] {
        assert_eq!(seen.pop().as_deref(), Some("system:authenticated"));
        assert!(seen == groups, "{} of {GROUPS} groups arrived", seen.len());
    }
}

/// Other clients may send 512 lines.
#[tokio::test]
async fn a_hub_may_send_two_thousand_lines_over_http1() {
    let fixture = Fixture::with(Http::H2, &[]).await;
    fixture.hub.allow_all();
    let mut identity = vec![("X-Remote-User", "jane")];
    identity.extend(std::iter::repeat_n(("X-Remote-Group", "dev"), 2000));
    let mut connection = fixture.front_proxy(Http::H1).await;
    assert_eq!(connection.call("GET", &target(), &identity, b"").await.status, 200);
    identity.extend(std::iter::repeat_n(("X-Remote-Group", "dev"), 1000));
    let mut connection = fixture.front_proxy(Http::H1).await;
    assert_eq!(connection.call("GET", &target(), &identity, b"").await.status, 431);
}

#[tokio::test]
async fn uids_and_extra_attributes_are_withheld_as_the_operator_says() {
    let fixture =
        Fixture::with(Http::H2, &[GATE, "--impersonate-uid=false", "--impersonate-extra-filter=a,example.com/*"]).await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(Http::H2).await;
    let identity = [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-A", "1"),
        ("X-Remote-Extra-Ab", "2"),
        ("X-Remote-Extra-Example.com%2fc", "3"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fd", "4"),
    ];
    assert_eq!(connection.call("GET", &target(), &identity, b"").await.status, 200);
    let expected = [
        ("user", "jane"),
        ("group", "system:authenticated"),
        ("extra-ab", "2"),
        ("extra-authentication.kubernetes.io%2fd", "4"),
    ];
    assert_eq!(acted_as(&fixture.member.next_request().await), lines(&expected));
}

#[tokio::test]
async fn a_name_that_would_arrive_as_another_reaches_nobody() {
    let fixture = Fixture::with(Http::H2, &[GATE]).await;
    fixture.hub.allow_all();
    for (token, name) in [("a", "jane "), ("b", "jane\nImpersonate-Group: system:masters")] {
        fixture.hub.add_token(token, TokenUser::new(name, &[]));
        let mut connection = fixture.connect(Http::H2, None).await.bearer(token);
        let message = connection.get(&target()).await.status_message(400, "BadRequest");
        assert!(message.contains("identity"), "{message}");
    }
    assert_eq!(fixture.member.request_count(), 0);
}

across_http!(kubevelas_impersonation_reaches_the_member);

/// KubeVela acts for the author of an application: its own token, the user it acts for, and
/// `impersonate=true`.
async fn kubevelas_impersonation_reaches_the_member(http: Http) {
    let fixture = Fixture::with(http, &["--feature-gates=APIPriorityAndFairness=false"]).await;
    let vela = "system:serviceaccount:vela-system:kubevela-vela-core";
    fixture.hub.add_token("velas-token", TokenUser::new(vela, &["system:serviceaccounts"]));
    fixture.hub.on_access(move |spec: &Value| {
        let impersonates = spec["resourceAttributes"]["verb"] == "impersonate";
        match spec["user"].as_str() {
            Some(user) if user == vela && impersonates => Decision::allow(),
            Some("jane") if !impersonates => Decision::allow(),
            _ => Decision::no_opinion(""),
        }
    });
    let mut connection = fixture.connect(http, None).await.bearer("velas-token");
    let headers =
        [("Impersonate-User", "jane"), ("Impersonate-Group", "kubevela:client"), ("Impersonate-Group", "dev")];
    let path = format!("{}?impersonate=true&dryRun=All", target());
    assert_eq!(connection.call("PATCH", &path, &headers, b"{}").await.status, 200);
    let request = fixture.member.next_request().await;
    assert_eq!(request.target, format!("{PATH}?impersonate=true&dryRun=All"), "the query is forwarded untouched");
    let expected =
        [("user", "jane"), ("group", "kubevela:client"), ("group", "dev"), ("group", "system:authenticated")];
    assert_eq!(acted_as(&request), lines(&expected));
    // Without the query nothing of it crosses.
    assert_eq!(connection.call("GET", &target(), &headers, b"").await.status, 200);
    assert_eq!(acted_as(&fixture.member.next_request().await), []);
}

#[tokio::test]
async fn upgrades_act_as_their_caller_too() {
    let member = RawMember::always(Act::upgrade("websocket", b"")).await;
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).arg(GATE).start().await;
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh");
    let mut connection = testbed.client().h1().await.unwrap();
    let authorization = format!("Bearer {ADMIN}");
    let headers = [("Authorization", &*authorization)];
    assert_eq!(connection.upgrade("GET", &target, "websocket", &headers).await.unwrap().status, 101);
    let head = member.next_head().await;
    let head = std::str::from_utf8(&head).unwrap().to_ascii_lowercase();
    for line in
        ["\r\nimpersonate-user: admin\r\n", "\r\nimpersonate-group: system:masters\r\n", "\r\nimpersonate-uid: 1\r\n"]
    {
        assert!(head.contains(line), "{line:?} missing in {head}");
    }
}
