//! Through a proxy, which resolves the server's name.

use kit::proxy::{FakeProxy, ProxyKind, ProxyOptions};
use tunnel_agent::Agent;

use crate::fixture::{Fixture, ready};

#[tokio::test(flavor = "multi_thread")]
async fn links_come_about_through_proxies_of_all_kinds() {
    for kind in ProxyKind::ALL {
        let fixture = Fixture::new();
        let server = fixture.server(&["one"]).await;
        let credentials = Some(("jane".to_owned(), "secret".to_owned()));
        let proxy = FakeProxy::with(kind, ProxyOptions { credentials, ..ProxyOptions::default() }).await;
        std::fs::write(fixture.path("proxy-ca.crt"), proxy.ca_pem()).unwrap();
        let mut arguments = fixture.arguments(&[], server.address);
        arguments.push(format!("--server=tunnel.example:{}", server.address.port()));
        arguments.push(format!("--proxy-url={}", proxy.url()));
        arguments.push(format!("--proxy-ca-file={}", fixture.path("proxy-ca.crt").display()));
        let agent = Agent::start(arguments).unwrap();
        ready(&agent);
        server.linked(2).await;
        let asked = proxy.asked();
        let name = format!("tunnel.example:{}", server.address.port());
        assert!(
            asked.iter().all(|asked| asked.destination == name && asked.credentials.is_some()),
            "{kind:?} {asked:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_resolved_and_verified() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let mut arguments = fixture.arguments(&[], server.address);
    arguments.push(format!("--server=localhost:{}", server.address.port()));
    arguments.push("--server-name=tunnel.example".into());
    let agent = Agent::start(&arguments).unwrap();
    ready(&agent);
    server.linked(2).await;
    drop(agent);

    server.linked(0).await;
    arguments.pop();
    arguments.push("--server-name=other.example".into());
    let agent = Agent::start(&arguments).unwrap();
    kit::wait::becomes(kit::wait::WAIT, "a refusal of the server's certificate", async || {
        crate::fixture::admin(&agent, "/metrics").await.1.contains("registration_failures_total{reason=\"tls\"}")
    })
    .await;
    assert!(server.links().is_empty());
}
