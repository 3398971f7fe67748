//! Traffic through the tunnel: requests, streams, upgrades, probes, with each kind of credential.

use bytes::Bytes;
use system_tests::prelude::*;

use super::server::refusal;
use super::{API_SERVER, Answer, Fixture, PATH, Pki, TunnelServer, direct, member, tunnelled};

across_http!(a_member_behind_the_tunnel_is_used_like_any_other);

async fn a_member_behind_the_tunnel_is_used_like_any_other(http: Http) {
    let fixture = Fixture::new(http.member_options()).await;
    let mut connection = fixture.testbed.connect(http).await;
    for _ in 0..5 {
        let answer = connection.get(&proxied(CLUSTER, PATH)).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "fine"));
    }
    let request = fixture.member.next_request().await;
    assert_eq!(request.target, PATH);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {MEMBER_TOKEN}").as_str()));
    assert_eq!(fixture.member.connections_accepted(), 1, "connections are used again");
    assert_eq!(fixture.server.asked(), [(API_SERVER.to_owned(), CLUSTER.to_owned())]);
    assert_eq!(fixture.server.links(), ["gateway-1"]);
    assert_eq!(fixture.testbed.metric("cluster_gateway_tunnel_links").await, 1);
    assert_eq!(fixture.testbed.metric("cluster_gateway_tunnel_opens_total{outcome=\"opened\",hop=\"\"}").await, 1);
    assert_eq!(fixture.testbed.metric("cluster_gateway_tunnel_open_seconds_count").await, 1);
}

#[tokio::test]
async fn the_last_opening_of_a_stream_is_told_hop_by_hop() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let (without, with) = (TunnelServer::start(&pki).await, TunnelServer::start(&pki).await);
    without.set(CLUSTER, refusal(tunnel::Hop::Server, tunnel::Reason::NoLink, "no agent"));
    with.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki
        .gateway(&[&without, &with])
        .cluster(CLUSTER, tunnelled(CLUSTER, &member))
        .cluster("direct", direct(&member))
        .start()
        .await;
    let traffic = async |name: &str| {
        let path = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{name}/traffic");
        testbed.get(&path).await.json()["status"].take()
    };
    assert_eq!(traffic(CLUSTER).await["tunnelOpen"], Value::Null, "nobody has asked");
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    let told = traffic(CLUSTER).await;
    let open = &told["tunnelOpen"];
    let hops = open["hops"].as_array().expect("hops");
    let answers: Vec<_> = hops.iter().map(|hop| (hop["server"].clone(), hop["outcome"].clone())).collect();
    let address = |server: &TunnelServer| json!(server.address().to_string());
    // Which is asked first is chance.
    assert_eq!(answers.last(), Some(&(address(&with), json!("opened"))), "{open}");
    assert!(answers.len() == 1 || answers[0] == (address(&without), json!("no-link")), "{open}");
    let took = |of: &Value| of["tookMicros"].as_u64().expect("a time");
    assert!(hops.iter().all(|hop| took(hop) > 0 && took(hop) <= took(open)), "{open}");
    assert!(open["time"].as_i64() > Some(1_000_000_000_000), "{open}");
    let shares = |hop: &Value| [hop["agentMicros"].as_u64(), hop["dialMicros"].as_u64()];
    assert!(hops.iter().all(|hop| shares(hop) == [None, None]), "an older server tells nothing: {open}");

    // Longer than the whole cannot be.
    let timing = tunnel::Timing::of_dial(Duration::from_micros(1)).with_agent(Duration::from_mins(5));
    with.set(CLUSTER, Answer::Timed(timing, member.address()));
    member.close_connections();
    let answered = |answer: &system_tests::Answer| answer.status == 200;
    testbed.until(WAIT, &proxied(CLUSTER, PATH), answered).await;
    let told = traffic(CLUSTER).await;
    let hop = told["tunnelOpen"]["hops"].as_array().and_then(|hops| hops.last()).expect("a hop");
    assert_eq!(shares(hop), [hop["tookMicros"].as_u64(), Some(1)], "{hop}");

    with.set(CLUSTER, refusal(tunnel::Hop::Agent, tunnel::Reason::Unreachable, "refused"));
    member.close_connections();
    testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 503).await;
    let told = traffic(CLUSTER).await;
    assert_eq!(
        told["tunnelOpen"]["hops"].as_array().and_then(|hops| hops.last()).map(|hop| &hop["outcome"]),
        Some(&json!("unreachable")),
        "{told}"
    );

    assert_eq!(testbed.get(&proxied("direct", PATH)).await.status, 200);
    assert_eq!(traffic("direct").await["tunnelOpen"], Value::Null);
}

#[tokio::test]
async fn megabytes_cross_both_ways() {
    let (pki, echo) = (Pki::new(), FakeMember::start(MemberOptions::default()).await);
    let body = Bytes::from(vec![b'x'; 5 << 20]);
    let sent = body.clone();
    echo.on_any(move |_| Reply::full(200, &[], sent.clone()));
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(echo.address()));
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &echo)).start().await;
    for http in [Http::H1, Http::H2] {
        let answer = testbed.connect(http).await.get(&proxied(CLUSTER, PATH)).await;
        assert!(answer.status == 200 && answer.body == body, "{} bytes of {}", answer.body.len(), body.len());
    }
}

#[tokio::test]
async fn the_member_is_verified_end_to_end() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    let other = member(MemberOptions::default()).await;
    fixture.testbed.register("stranger", tunnelled("stranger", &other));
    fixture.server.set("stranger", Answer::LeadsTo(fixture.member.address()));
    let refused = |answer: &system_tests::Answer| answer.text().contains("invalid peer certificate");
    let answer = fixture.testbed.until(WAIT, &proxied("stranger", PATH), refused).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(message.contains(&format!("dial tcp {API_SERVER} through the tunnel: tls: ")), "{message}");
    assert_eq!((fixture.member.request_count(), other.connections_accepted()), (0, 0));
}

#[tokio::test]
async fn the_name_that_is_verified_can_be_another() {
    let serving = Leaf::server("api").without_sans().san("api.berlin.example");
    let options = MemberOptions { serving, ..MemberOptions::default() };
    let fixture = Fixture::new(options).await;
    let message = fixture.get().await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("not valid for name") && message.contains("kubernetes.default.svc"), "{message}");
    let secret = tunnelled(CLUSTER, &fixture.member).data("tls-server-name", "api.berlin.example");
    fixture.testbed.register(CLUSTER, secret);
    fixture.testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 200).await;
}

#[tokio::test]
async fn a_client_certificate_reaches_the_member() {
    let authority = Arc::new(Authority::new("member-client-ca"));
    let identity = authority.issue(&Leaf::client("gateway-of-berlin"));
    let options = MemberOptions {
        client_authority: Some(authority),
        require_client_certificate: true,
        ..MemberOptions::default()
    };
    let (pki, member) = (Pki::new(), member(options).await);
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed =
        pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member).certificate(&identity)).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(member.next_request().await.peer.expect("a certificate").common_name, "gateway-of-berlin");
}

#[tokio::test]
async fn a_program_issues_the_credential_and_is_told_of_the_cluster() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let script = r#"case "$KUBERNETES_EXEC_INFO" in *'"server":"https://kubernetes.default.svc"'*) T=told;; *) T=untold;; esac
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' $T"#;
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh", "args": ["-c", script], "interactiveMode": "Never", "provideClusterInfo": true,
    });
    let secret = tunnelled(CLUSTER, &member).credential_type("Dynamic").data("exec", exec.to_string());
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, secret).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(member.next_request().await.header("authorization"), Some("Bearer told"));
}

#[tokio::test]
async fn an_exec_goes_through() {
    let pki = Pki::new();
    let raw = RawMember::always(Act::upgrade("websocket", b"hello")).await;
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(raw.address()));
    let secret = tunnelled(CLUSTER, &raw).data("tls-server-name", "localhost");
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, secret).start().await;
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh&stdin=true");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101, "{head:?}");
    assert_eq!(connection.read_exact(5).await.expect("what the member said first"), "hello");
    connection.send("and back").await.unwrap();
    assert_eq!(connection.read_exact(8).await.expect("the echo"), "and back");
    drop(connection);
    raw.until(0, |connection| connection.caller_closed).await;
}

#[tokio::test]
async fn probes_go_through() {
    let (hub, pki) = (FakeHub::start().await, Pki::new());
    let member = member(MemberOptions::default()).await;
    member.on("/healthz", |_| Reply::full(200, &[], "ok"));
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    hub.put_secret(tunnelled(CLUSTER, &member));
    let testbed = pki.gateway(&[&server]).hub(&hub).arg("--health-probe-interval=20ms").start().await;
    let annotation = |name: &str| {
        let secret = hub.get(Resource::Secrets, "vela-system", CLUSTER).expect("the Secret is there");
        secret["metadata"]["annotations"][format!("status.cluster.core.oam.dev/{name}")].as_str().map(str::to_owned)
    };
    eventually(WAIT, || annotation("healthy").as_deref() == Some("true")).await;
    server.set(CLUSTER, refusal(tunnel::Hop::Server, tunnel::Reason::NoLink, "gone"));
    eventually(WAIT, || annotation("healthy").as_deref() == Some("false")).await;
    assert_eq!(annotation("healthy-reason").as_deref(), Some("Unknown: dial tcp: no tunnel-agent is linked"));
    testbed.stop().await;
}

#[tokio::test]
async fn the_direct_way_is_not_touched() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    fixture.testbed.register("direct", direct(&fixture.member));
    fixture.testbed.until(WAIT, &proxied("direct", PATH), |answer| answer.status == 200).await;
    assert_eq!(fixture.server.count(), 0);
}

#[tokio::test]
async fn those_who_come_first_share_one_link() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let server = TunnelServer::start(&pki).await;
    let names: Vec<_> = (0..20).map(|number| format!("c{number}")).collect();
    let builder = names.iter().fold(pki.gateway(&[&server]), |builder, name| {
        server.set(name, Answer::LeadsTo(member.address()));
        builder.cluster(name, tunnelled(name, &member))
    });
    let testbed = builder.start().await;
    let connection = testbed.connect(Http::H2).await;
    let targets: Vec<_> = names.iter().map(|name| proxied(name, PATH)).collect();
    let all = targets.iter().map(|target| connection.open_beside("GET", target));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.expect("an answer").status, 200);
    }
    assert_eq!((server.count(), server.links().len()), (20, 1));
}

#[tokio::test]
async fn each_core_has_a_link_of_its_own() {
    let fixture = Fixture::with(MemberOptions::default(), |builder| builder.threads(2)).await;
    // The kernel spreads connections over the cores.
    becomes(WAIT, "a link of each core", async || {
        assert_eq!(fixture.get().await.status, 200);
        fixture.server.links().len() == 2
    })
    .await;
    for _ in 0..10 {
        assert_eq!(fixture.get().await.status, 200);
    }
    assert_eq!(fixture.server.links().len(), 2);
}
