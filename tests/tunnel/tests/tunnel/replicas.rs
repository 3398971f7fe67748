//! Several servers, gateways that know all of them, and agents that are linked to some: a caller
//! need not know to which.

use kit::hub::ClusterSecret;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::Leaf;
use system_tests::{Http, MEMBER_TOKEN, proxied};
use tokio::task::block_in_place;
use tunnel_tests::testbed::CLUSTER;
use tunnel_tests::{AgentSpec, Testbed};

const PATH: &str = "/api/v1/nodes";

/// A gateway that asks the servers in this order.
async fn gateway(testbed: &Testbed, order: [usize; 3], member: &FakeMember) -> system_tests::Testbed {
    let (pki, at) = (&testbed.pki, |file: &str| testbed.pki.directory().join(file).display().to_string());
    pki.frontends.issue(&Leaf::client("gateway")).write_to(pki.directory(), "gateway").expect("a writable directory");
    let hosts = order.map(|at| testbed.server(at).frontend_address().expect("a listener").to_string());
    let secret = ClusterSecret::new("vela-system", CLUSTER).tunnelled().ca(&member.ca_pem()).token(MEMBER_TOKEN);
    system_tests::Testbed::builder()
        .arg(&format!("--proxy-host={}", hosts.join(",")))
        .arg(&format!("--proxy-ca-cert={}", pki.serving_ca.display()))
        .arg(&format!("--proxy-cert={}", at("gateway.crt")))
        .arg(&format!("--proxy-key={}", at("gateway.key")))
        .cluster(CLUSTER, secret)
        .start()
        .await
}

async fn assert_reaches(gateway: &system_tests::Testbed, what: &str) {
    let answer = gateway.connect(Http::H2).await.get(&proxied(CLUSTER, PATH)).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "fine"), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_on_two_of_three_is_reached_by_every_gateway_and_when_one_is_gone() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::full(200, &[], "fine"));
    let agent = AgentSpec { servers: vec![0, 1], api_server: Some(member.address()), ..AgentSpec::new(CLUSTER) };
    let mut testbed = Testbed::builder().servers(3).agent(agent).start().await;
    let gateways = [gateway(&testbed, [2, 0, 1], &member).await, gateway(&testbed, [1, 2, 0], &member).await];
    for (number, gateway) in gateways.iter().enumerate() {
        assert_reaches(gateway, &format!("gateway {number}, all servers there")).await;
    }
    let gone = testbed.take_server(0);
    block_in_place(|| drop(gone));
    for (number, gateway) in gateways.iter().enumerate() {
        assert_reaches(gateway, &format!("gateway {number}, without the first server")).await;
    }
}
