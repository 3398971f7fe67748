//! The gateway is its own tunnel-server.

use http::StatusCode;
use system_tests::TestbedBuilder;
use system_tests::prelude::*;
use tempfile::TempDir;
use tunnel::register::RegisterError;

use super::agent::Agent;
use super::{Answer, PATH, Pki, TunnelServer, member, tunnelled};

/// Counts the agents that the gateway uses, or has used.
const LINKED: &str = "tunnel_server_registrations_total{outcome=\"linked\"}";

/// The authority of the agents.
struct Agents {
    authority: Authority,
    directory: TempDir,
}

// === impl Agents ===

impl Agents {
    fn new() -> Self {
        let agents = Self {
            authority: Authority::new("agents-ca"),
            directory: tempfile::tempdir().expect("a directory for temporary files"),
        };
        agents.authority.write_to(agents.directory.path(), "agents").expect("the directory is writable");
        agents
    }

    /// A gateway that takes their links.
    fn listening(&self, builder: TestbedBuilder) -> TestbedBuilder {
        let ca = self.directory.path().join("agents.crt");
        builder.arg("--tunnel-listen=127.0.0.1:0").arg(&format!("--tunnel-client-ca-file={}", ca.display()))
    }

    /// An agent of `of` that registers as `cluster`'s, used by the gateway from here on: it hears
    /// that it is linked a moment before.
    async fn link(
        &self,
        testbed: &Testbed,
        of: &str,
        cluster: &str,
        member: &FakeMember,
    ) -> Result<Agent, RegisterError> {
        let identity = self.authority.issue(&Leaf::client(format!("system:tunnel-agent:{of}")));
        let address = testbed.tunnel_address().expect("it takes links");
        let before = testbed.metric(LINKED).await;
        let agent = Agent::link(address, testbed.serving(), &identity, cluster, member.address()).await?;
        becomes(WAIT, "the agent in the registry", async || testbed.metric(LINKED).await > before).await;
        Ok(agent)
    }
}

across_http!(an_agent_links_and_its_member_is_used_like_any_other);

async fn an_agent_links_and_its_member_is_used_like_any_other(http: Http) {
    let (agents, member) = (Agents::new(), member(http.member_options()).await);
    let testbed = agents.listening(Testbed::builder()).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("no tunnel-agent of the cluster is linked to this gateway: check"), "{message}");

    let agent = agents.link(&testbed, CLUSTER, CLUSTER, &member).await.expect("its certificate is good");
    let mut connection = testbed.connect(http).await;
    for _ in 0..5 {
        assert_eq!(connection.get(&proxied(CLUSTER, PATH)).await.status, 200);
    }
    assert_eq!(member.connections_accepted(), 1);
    assert_eq!(testbed.metric("cluster_gateway_tunnel_opens_total{outcome=\"opened\",hop=\"\"}").await, 1);

    let metrics = testbed.get("/metrics").await.text();
    let mut types: Vec<_> = metrics.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all, "the tunnel's series and the gateway's do not share names");
    assert!(metrics.contains("tunnel_server_"), "its agents are counted: {metrics}");

    // A crash is noticed, and ends open requests.
    member.on("/never", never);
    let mut waiting = testbed.connect(http).await;
    let asking = tokio::spawn(async move { waiting.get(&proxied(CLUSTER, "/never")).await });
    becomes(WAIT, "the request under way", async || member.request_count() == 6).await;
    drop(agent);
    let answer = within(WAIT, "the end of the request", asking).await.expect("no panic");
    let message = answer.status_message(502, "InternalError");
    assert!(message.contains("the tunnel through an agent linked to this gateway broke"), "{message}");
    testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 503).await;
    let _back = agents.link(&testbed, CLUSTER, CLUSTER, &member).await.expect("it comes back");
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200, "no circuit was opened by its absence");
}

/// An answer that does not come.
fn never(_: &kit::member::Recorded) -> Reply {
    Reply::full(200, &[], "").after(&Gate::new())
}

#[tokio::test]
async fn a_certificate_is_good_for_its_own_cluster_only() {
    let (agents, member) = (Agents::new(), member(MemberOptions::default()).await);
    let testbed = agents.listening(Testbed::builder()).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    for (of, cluster) in [("other", CLUSTER), (CLUSTER, "other")] {
        match agents.link(&testbed, of, cluster, &member).await {
            Err(RegisterError::Refused { status, .. }) => assert_eq!(status, StatusCode::FORBIDDEN),
            Err(error) => panic!("refused for another reason: {error}"),
            Ok(_) => panic!("an agent of {of} was taken for one of {cluster}"),
        }
    }
    let stranger = Authority::new("strangers").issue(&Leaf::client(format!("system:tunnel-agent:{CLUSTER}")));
    let address = testbed.tunnel_address().expect("it takes links");
    let refused = Agent::link(address, testbed.serving(), &stranger, CLUSTER, member.address()).await;
    assert!(refused.is_err(), "a stranger was taken for an agent");
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 503);
}

#[tokio::test]
async fn agents_linked_here_come_before_other_servers() {
    let (agents, pki, member) = (Agents::new(), Pki::new(), member(MemberOptions::default()).await);
    let server = TunnelServer::start(&pki).await;
    server.set("elsewhere", Answer::LeadsTo(member.address()));
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = agents
        .listening(pki.gateway(&[&server]))
        .cluster(CLUSTER, tunnelled(CLUSTER, &member))
        .cluster("elsewhere", tunnelled("elsewhere", &member))
        .start()
        .await;
    let _agent = agents.link(&testbed, CLUSTER, CLUSTER, &member).await.expect("its certificate is good");
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(server.count(), 0);
    assert_eq!(testbed.get(&proxied("elsewhere", PATH)).await.status, 200);
    assert_eq!(server.asked(), [(super::API_SERVER.to_owned(), "elsewhere".to_owned())]);
}

#[tokio::test]
async fn a_gateway_that_leaves_sends_its_agents_elsewhere_and_finishes_what_is_under_way() {
    let (agents, member) = (Agents::new(), member(MemberOptions::default()).await);
    let mut streams = member.streams("/long");
    let testbed = agents.listening(Testbed::builder()).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let agent = agents.link(&testbed, CLUSTER, CLUSTER, &member).await.expect("its certificate is good");
    let mut connection = testbed.connect(Http::H1).await;
    let mut long = connection.open("GET", &proxied(CLUSTER, "/long"), &[]).await.expect("an answer");
    let (_, sender) = streams.next().await;
    assert!(sender.send("first").await);
    let stopping = tokio::spawn(testbed.stop());
    within(WAIT, "the wish that the agent leave", agent.asked_to_leave()).await;
    agent.drain();
    assert!(sender.send(" and last").await);
    drop(sender);
    let mut seen: Vec<u8> = Vec::new();
    while let Some(piece) = within(WAIT, "the rest", long.chunk()).await.expect("it comes to its end") {
        seen.extend_from_slice(&piece);
    }
    assert_eq!(seen, b"first and last");
    within(WAIT, "the end of the gateway", stopping).await.expect("it stops");
}

#[tokio::test]
async fn nobody_could_prove_to_be_an_agent_so_it_does_not_start() {
    let start = Testbed::builder().arg("--tunnel-listen=127.0.0.1:0").launch();
    let failed = tokio::spawn(async move { drop(start.await) }).await.expect_err("it does not start");
    let panic = failed.into_panic();
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("--tunnel-client-ca-file"), "{text}");
}
