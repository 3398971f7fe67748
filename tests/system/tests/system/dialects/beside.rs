//! Beside a Karmada, members are the gateway's, and everything else of the group goes on to the
//! server that had it before, as the hub's aggregator would send it.

use kit::member::Recorded;
use kit::member::raw::RawMember;
use system_tests::prelude::*;

use super::{ALICE, deliver_each, hub};
use crate::upgrades::{Head, upgrade_over};

across_http!(
    what_is_for_no_member_goes_on_as_it_was_sent,
    members_are_the_gateways,
    a_watch_lasts_and_ends_with_its_client,
    documents_tell_of_both_groups,
);

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A gateway beside a Karmada that answers everything with 200.
struct Fixture {
    hub: FakeHub,
    karmada: FakeMember,
    member: FakeMember,
    testbed: Testbed,
    files: Files,
}

/// Files with which the gateway and Karmada's server authenticate each other.
struct Files {
    directory: tempfile::TempDir,
    front_proxies: Arc<Authority>,
}

// === impl Files ===

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Self { directory, front_proxies: Arc::new(Authority::new("front-proxies")) };
        files.write_identity("first");
        files
    }

    fn write_identity(&self, name: &str) {
        let issued = self.front_proxies.issue(&Leaf::client(name));
        issued.write_to(self.directory.path(), "front-proxy").expect("a writable directory");
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.directory.path().join(file), text).expect("a writable directory");
    }

    fn arguments(&self, url: &str, ca: &str) -> [String; 5] {
        self.write("ca.crt", ca);
        let file = |name: &str| self.directory.path().join(name).display().to_string();
        [
            "--karmada-dialect=beside".to_owned(),
            format!("--karmada-upstream={url}"),
            format!("--karmada-upstream-ca-file={}", file("ca.crt")),
            format!("--karmada-upstream-cert-file={}", file("front-proxy.crt")),
            format!("--karmada-upstream-key-file={}", file("front-proxy.key")),
        ]
    }

    /// A server that accepts connections of its own front proxies alone.
    fn options(&self, http: Http) -> MemberOptions {
        let client_authority = Some(Arc::clone(&self.front_proxies));
        MemberOptions { client_authority, require_client_certificate: true, ..http.member_options() }
    }
}

// === impl Fixture ===

impl Fixture {
    async fn set(http: Http) -> Self {
        Self::with(http, &[]).await
    }

    async fn with(http: Http, more: &[&str]) -> Self {
        let files = Files::new();
        let karmada = FakeMember::start(files.options(http)).await;
        karmada.on_any(|_| Reply::json(200, &json!({"kind": "ClusterList"})));
        let (hub, member) = (hub().await, http.member().await);
        hub.add_token(ALICE, alice());
        member.on_any(|_| Reply::json(200, &json!({"kind": "PodList"})));
        hub.put_secret(cluster(CLUSTER, &member));
        let arguments = files.arguments(&karmada.url(), &karmada.ca_pem());
        let more = more.iter().map(|argument| (*argument).to_owned());
        let arguments: Vec<_> = arguments.into_iter().chain(more).collect();
        let testbed = started(&hub, &arguments).await;
        Self { hub, karmada, member, testbed, files }
    }

    async fn connect(&self, http: Http) -> Connection {
        self.testbed.anonymous(http).await.bearer(ALICE)
    }
}

fn alice() -> TokenUser {
    let extra = [("example.org/scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into();
    let groups = ["devs", "system:authenticated"];
    TokenUser { uid: "7".to_owned(), extra, ..TokenUser::new("alice", &groups) }
}

async fn started(hub: &FakeHub, arguments: &[String]) -> Testbed {
    let builder = Testbed::builder().hub(hub).arg("--karmada-forward-all-groups");
    arguments.iter().fold(builder, |builder, argument| builder.arg(argument)).start().await
}

/// The sender's identity that the request carries.
fn told(request: &Recorded) -> Vec<String> {
    let identity = request.headers.iter().filter(|(name, _)| {
        ["x-remote", "x_remote", "impersonate", "authorization", "cookie"]
            .iter()
            .any(|one| name.as_str().starts_with(one))
    });
    identity.map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect()
}

const ALICE_TOLD: [&str; 6] = [
    "x-remote-user: alice",
    "x-remote-group: devs",
    "x-remote-group: system:authenticated",
    "x-remote-uid: 7",
    "x-remote-extra-example.org%2fscopes: a",
    "x-remote-extra-example.org%2fscopes: b",
];

async fn what_is_for_no_member_goes_on_as_it_was_sent(http: Http) {
    let fixture = Fixture::set(http).await;
    let mut connection = fixture.connect(http).await;
    for (method, target, body) in [
        ("GET", format!("{CLUSTERS}?limit=5&x=%20+"), ""),
        ("GET", format!("{CLUSTERS}/"), ""),
        ("POST", CLUSTERS.to_owned(), "{}"),
        ("PATCH", format!("{CLUSTERS}/a/status"), "[]"),
        ("DELETE", format!("{CLUSTERS}/c1?dryRun=All"), ""),
        ("GET", "/apis/cluster.karmada.io".to_owned(), ""),
        ("GET", "/apis/cluster.karmada.io/v1alpha1".to_owned(), ""),
        ("GET", "/openapi/v2".to_owned(), ""),
        ("GET", "/openapi/v3/apis/cluster.karmada.io/v1alpha1?hash=A".to_owned(), ""),
    ] {
        let forged = [
            ("x-remote-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x_remote_user", "admin"),
            ("x-remote-extra-other", "c"),
            ("cookie", "a=b"),
            ("accept", "application/json;as=Table"),
            ("if-none-match", "\"tag\""),
        ];
        let answer = connection.call(method, &target, &forged, body.as_bytes()).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"kind":"ClusterList"}"#.to_owned()), "{target}");
        let request = fixture.karmada.next_request().await;
        assert_eq!((request.method.as_str(), request.target.as_str()), (method, target.as_str()));
        assert_eq!((&request.body()[..], told(&request)), (body.as_bytes(), ALICE_TOLD.map(str::to_owned).to_vec()));
        let kept = ["accept", "if-none-match"].map(|name| request.header(name));
        assert_eq!(kept, [Some("application/json;as=Table"), Some("\"tag\"")], "{target}");
    }
    assert_eq!(fixture.karmada.connections_accepted(), 1);
    assert_eq!(fixture.member.connections_accepted(), 0);
}

/// Each answer is the server's own: its refusals, too.
#[tokio::test]
async fn what_it_answers_is_passed_on_as_it_is() {
    let fixture = Fixture::set(Http::H2).await;
    let mut connection = fixture.connect(Http::H2).await;
    let refusal = "clusters.cluster.karmada.io is forbidden: User \"alice\" cannot list resource \"clusters\"";
    let status = move |code| Reply::status(code, refusal);
    for (name, code) in [("a", 403), ("b", 404), ("c", 409), ("d", 429), ("e", 500)] {
        let path = format!("{CLUSTERS}/{name}");
        fixture.karmada.on(&path, move |_| status(code));
        let answer = connection.get(&path).await;
        assert_eq!((answer.status, answer.json()["message"].as_str()), (code, Some(refusal)));
    }
    let moved = |location: String| move |_: &Recorded| Reply::full(301, &[("location", location.as_str())], "");
    let path = format!("{CLUSTERS}/moved");
    fixture.karmada.on(&path, moved("/apis/cluster.karmada.io/v1alpha1/clusters/here".to_owned()));
    assert_eq!(connection.get(&path).await.header("location"), Some(format!("{CLUSTERS}/here").as_str()));
    for elsewhere in ["https://evil.example/".to_owned(), format!("{}//evil.example/", fixture.karmada.url())] {
        fixture.karmada.on(&path, moved(elsewhere));
        let message = connection.get(&path).await.status_message(502, "InternalError");
        assert!(message.contains("attempted to redirect"), "{message}");
    }
}

async fn members_are_the_gateways(http: Http) {
    let fixture = Fixture::set(http).await;
    let pods = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}"#;
    fixture.member.on("/api/v1/pods", move |_| Reply::full(200, &[("content-type", "application/json")], pods));
    let mut connection = fixture.connect(http).await;
    assert_eq!(connection.get(&Dialect::Karmada.path("/api/v1/pods")).await.status, 200);
    let request = fixture.member.next_request().await;
    assert_eq!((request.target.as_str(), request.header("impersonate-user")), ("/api/v1/pods", Some("alice")));
    assert_eq!(told(&request).iter().filter(|header| header.starts_with("x-remote")).count(), 0);
    let every = connection.get(&format!("{CLUSTERS}/*/proxy/api/v1/pods")).await;
    assert_eq!(every.status, 200, "{}", every.text());
    for (target, code) in [(format!("{CLUSTERS}/a%2Fb/proxy/api"), 400), (format!("{CLUSTERS}/nowhere/proxy/api"), 404)]
    {
        assert_eq!(connection.get(&target).await.status, code, "{target}");
    }
    assert_eq!(fixture.karmada.connections_accepted(), 0);
}

async fn a_watch_lasts_and_ends_with_its_client(http: Http) {
    let fixture = Fixture::set(http).await;
    let mut streams = fixture.karmada.streams(CLUSTERS);
    let mut connection = fixture.connect(http).await;
    let target = format!("{CLUSTERS}?watch=true");
    let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    deliver_each(&stream, &mut watch).await;
    drop(watch);
    drop(connection);
    stream.gone().await;
}

#[tokio::test]
async fn an_upgrade_goes_on_too() {
    let files = Files::new();
    let karmada = RawMember::always(Act::upgrade("websocket", b"an event")).await;
    let hub = hub().await;
    let testbed = started(&hub, &files.arguments(&karmada.url(), &karmada.ca_pem())).await;
    let target = format!("{CLUSTERS}?watch=true");
    let asked = ("GET", target.as_str());
    let (mut connection, head) = upgrade_over(&testbed.client(), ALICE, asked, "websocket", &[]).await;
    assert_eq!(head.status, 101);
    assert_eq!(connection.read_exact(8).await.expect("open"), "an event");
    let seen = Head::parse(&karmada.next_head().await);
    assert_eq!(seen.line, format!("GET {target} HTTP/1.1"));
    assert_eq!(seen.values("x-remote-user"), ["alice"]);
    assert!(seen.values("authorization").is_empty());
}

async fn documents_tell_of_both_groups(http: Http) {
    let fixture = Fixture::set(http).await;
    let mut connection = fixture.connect(http).await;
    let theirs = json!({"name": "cluster.karmada.io", "versions": [{"version": "v1alpha1"}]});
    let groups = json!({"groups": [theirs.clone(), {"name": "other"}]});
    let aggregated = json!({"items": [{"metadata": {"name": "cluster.karmada.io"}, "versions": [{"x": 1}]}]});
    let place = "/openapi/v3/apis/cluster.karmada.io/v1alpha1?hash=X";
    let root = json!({"paths": {"apis/cluster.karmada.io/v1alpha1": {"serverRelativeURL": place}}});
    fixture.karmada.on("/apis", move |request| {
        let is_aggregated = request.header("accept") == Some(V2);
        Reply::json(200, if is_aggregated { &aggregated } else { &groups })
    });
    fixture.karmada.on("/openapi/v3", move |_| Reply::json(200, &root));

    let answer = connection.get("/apis").await.json();
    let names: Vec<_> = answer["groups"].as_array().expect("groups").iter().map(|group| &group["name"]).collect();
    assert_eq!(names, ["cluster.core.oam.dev", "cluster.karmada.io"]);
    assert_eq!(answer["groups"][1], theirs);
    assert_eq!(told(&fixture.karmada.next_request().await), ALICE_TOLD);
    let answer = connection.call("GET", "/apis", &[("accept", V2)], b"").await;
    assert_eq!((answer.header("content-type"), &answer.json()["items"][1]["versions"][0]["x"]), (Some(V2), &json!(1)));
    let answer = connection.get("/openapi/v3").await.json();
    assert_eq!(answer["paths"]["apis/cluster.karmada.io/v1alpha1"]["serverRelativeURL"], place);
    assert!(answer["paths"]["apis/cluster.core.oam.dev/v1alpha1"].is_object(), "{answer}");
}

/// Neither our own group nor members must go away with Karmada, and a hub sends nothing for a group
/// that is in no discovery document.
#[tokio::test]
async fn documents_tell_of_ours_whatever_karmada_does() {
    let fixture = Fixture::set(Http::H2).await;
    let mut connection = fixture.connect(Http::H2).await;
    let (group, version) = ("/apis/cluster.karmada.io", "/apis/cluster.karmada.io/v1alpha1");
    let targets = [
        (version, "clusters/proxy", "never"),
        ("/apis", "cluster.karmada.io", "never"),
        ("/openapi/v3", "cluster.core.oam.dev", "karmada"),
        (group, "cluster.karmada.io/v1alpha1", "never"),
    ];
    // One that is waited for is enough.
    let all = &targets[..];
    for (status, asked) in [(Some(503), all), (Some(500), all), (Some(401), all), (None, &targets[..1])] {
        fixture.karmada.on_any(move |_| status.map_or(Reply::Never, |code| Reply::full(code, &[], "{")));
        for (target, has, has_not) in asked {
            let answer = connection.get(target).await;
            let warning = answer.header("warning").unwrap_or_default().to_owned();
            assert!(warning.contains("does not describe cluster.karmada.io: "), "{target}: {warning}");
            let text = answer.json().to_string();
            assert!(answer.status == 200 && text.contains(has) && !text.contains(has_not), "{text}");
        }
        assert_eq!(connection.get("/apis/cluster.core.oam.dev/v1alpha1").await.header("warning"), None);
    }
    // Karmada's answer counts.
    for code in [404, 403] {
        fixture.karmada.on_any(move |_| Reply::status(code, "its own words"));
        assert_eq!(connection.get(version).await.status, code);
    }
}

#[tokio::test]
async fn who_may_not_ask_asks_no_karmada() {
    let fixture = Fixture::set(Http::H2).await;
    fixture.hub.on_access(|_| Decision::no_opinion(""));
    for token in [ALICE, "no-such-token"] {
        let mut connection = fixture.testbed.anonymous(Http::H2).await.bearer(token);
        assert!(matches!(connection.get(CLUSTERS).await.status, 401 | 403));
    }
    fixture.hub.allow_all();
    let of_the_group = |target: &str| format!("/apis/cluster.karmada.io{target}");
    // Nor does Karmada, even as a member, get a request that it would read otherwise than the
    // gateway did.
    for target in ["/v1alpha1/../x", "/v1alpha1/clusters/%2e%2E/x", "//v1alpha1/clusters/c1/proxy/api"] {
        fixture.connect(Http::H2).await.get(&of_the_group(target)).await.status_message(400, "BadRequest");
    }
    for target in ["/v1alpha1/clusters/c1/prox%79/api", "/v1alpha1%2Fclusters%2Fc1%2Fproxy%2Fapi"] {
        assert_eq!(fixture.connect(Http::H2).await.get(&of_the_group(target)).await.status, 404, "{target}");
    }
    assert_eq!(fixture.karmada.connections_accepted(), 0);
}

/// Each failure names the server, the cause and what to do, and harms no member.
#[tokio::test]
async fn failures_name_the_server_and_what_to_do() {
    let fixture = Fixture::set(Http::H2).await;
    let mut connection = fixture.connect(Http::H2).await;
    let url = format!("Karmada's API server {} (--karmada-upstream) ", fixture.karmada.url());
    let nobody =
        "clusters.cluster.karmada.io is forbidden: User \"system:anonymous\" cannot list resource \"clusters\"";
    for (code, text) in [(401, "Unauthorized"), (403, nobody)] {
        fixture.karmada.on(CLUSTERS, move |_| Reply::status(code, text));
        let answer = connection.get(CLUSTERS).await;
        let details = answer.json()["details"].clone();
        let message = answer.status_message(502, "InternalError");
        assert!(message.starts_with(&url) && message.contains("--karmada-upstream-cert-file"), "{message}");
        assert_eq!(
            (&details["name"], &details["kind"]),
            (&json!("v1alpha1.cluster.karmada.io"), &json!("apiservices"))
        );
    }
    let label = "cluster=\"--karmada-upstream\"";
    let has = async |connection: &mut Connection, line: &str| connection.get("/metrics").await.text().contains(line);
    let failed = format!("cluster_gateway_requests_total{{{label},verb=\"GET\",code=\"502\"}} 2");
    becomes(WAIT, "the counts", async || has(&mut connection, &failed).await).await;
    let Fixture { karmada, testbed: _testbed, member: _member, hub: _hub, files: _files } = fixture;
    drop(karmada);
    becomes(WAIT, "the server to be away", async || {
        let answer = connection.get(CLUSTERS).await;
        let message = answer.json()["message"].to_string();
        let says = ["is unreachable: dial tcp", "--karmada-upstream-ca-file", "Members are served without it"];
        answer.status == 503 && message.contains(&url) && says.iter().all(|part| message.contains(part))
    })
    .await;
    assert_eq!(connection.get(&Dialect::Karmada.path("/api/v1/pods")).await.status, 200);
    let dials = format!("cluster_gateway_upstream_dial_errors_total{{{label},kind=\"refused\"}}");
    assert!(has(&mut connection, &dials).await);
}

/// It has the budget of one cluster.
#[tokio::test]
async fn a_request_too_many_names_the_server() {
    let fixture = Fixture::with(Http::H2, &["--max-long-requests-per-cluster=1"]).await;
    let mut streams = fixture.karmada.streams(CLUSTERS);
    let target = format!("{CLUSTERS}?watch=true");
    let mut connection = fixture.connect(Http::H2).await;
    let _watch = connection.open("GET", &target, &[]).await.expect("a head");
    let (_, _stream) = streams.next().await;
    let message = connection.get(&target).await.status_message(429, "TooManyRequests");
    assert!(message.contains(" in flight for Karmada's API server (limit 1, --max-long-"), "{message}");
    assert_eq!(connection.get(&format!("{CLUSTERS}/a")).await.status, 200);
}

#[tokio::test]
async fn files_are_followed_and_only_good_ones_are_taken() {
    let fixture = Fixture::set(Http::H2).await;
    let mut connection = fixture.connect(Http::H2).await;
    let mut streams = fixture.karmada.streams("/apis/cluster.karmada.io");
    let target = "/apis/cluster.karmada.io?watch=true";
    let mut watch = connection.open("GET", target, &[]).await.expect("a head");
    let (_, stream) = streams.next().await;
    assert_eq!(fixture.karmada.connections_accepted(), 1);
    let mut other = fixture.connect(Http::H2).await;
    let is = async |connection: &mut Connection, line: &str| connection.get("/metrics").await.text().contains(line);
    for (file, broken) in [("front-proxy.crt", "half a certif"), ("ca.crt", "")] {
        let path = fixture.files.directory.path().join(file);
        let good = std::fs::read_to_string(&path).expect("it is there");
        fixture.files.write(file, broken);
        becomes(WAIT, "the failure to be told", async || is(&mut other, "karmada_upstream_current 0\n").await).await;
        assert_eq!(other.get(CLUSTERS).await.status, 200, "the last good files stay in use");
        fixture.files.write(file, &good);
        becomes(WAIT, "the files to be good", async || is(&mut other, "karmada_upstream_current 1\n").await).await;
    }
    assert_eq!(fixture.karmada.connections_accepted(), 1, "nothing that counts has changed");
    fixture.files.write_identity("second");
    becomes(WAIT, "a connection with the new certificate", async || {
        assert_eq!(other.get(CLUSTERS).await.status, 200);
        fixture.karmada.connections_accepted() == 2
    })
    .await;
    assert!(stream.send("still here\n").await);
    assert_eq!(watch.chunk().await.expect("the watch goes on").expect("more to come"), "still here\n");
}
