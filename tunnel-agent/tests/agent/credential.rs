//! Files of the credential: missing, broken, present.

use kit::pki::{Authority, Leaf};
use tunnel_agent::Agent;

use crate::fixture::{Fixture, metric, ready};

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_file_is_waited_for() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    std::fs::remove_file(fixture.path("token")).unwrap();
    let agent = fixture.agent(&[&server], &[]);
    kit::wait::becomes(kit::wait::WAIT, "a failure", async || {
        metric(&agent, "tunnel_agent_reload_failures_total").await > 0.0
    })
    .await;
    assert!(server.seen().is_empty(), "nothing is sent without the token");
    fixture.write_token("late");
    let links = server.linked(2).await;
    assert_eq!(links[0].0.authorization.as_deref(), Some("Bearer late"));
    let before = metric(&agent, "tunnel_agent_reload_failures_total").await;
    std::fs::remove_file(fixture.path("token")).unwrap();
    kit::wait::becomes(kit::wait::WAIT, "the loss is noticed", async || {
        metric(&agent, "tunnel_agent_reload_failures_total").await > before
    })
    .await;
    assert_eq!(server.links().len(), 2, "links outlive the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_shown_and_followed() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let issue = |days| {
        let leaf = Leaf::client("system:tunnel-agent:c1");
        fixture.authority.issue(&leaf.valid(time::Duration::ZERO, time::Duration::days(days)))
    };
    let files = issue(5).write_to(fixture.directory.path(), "agent").unwrap();
    let mut arguments = fixture.arguments(&[&server], server.address);
    arguments.retain(|argument| !argument.starts_with("--token-file"));
    arguments.push(format!("--cert-file={}", files.certificate.display()));
    arguments.push(format!("--key-file={}", files.key.display()));
    let agent = Agent::start(arguments).unwrap();
    ready(&agent);
    let links = server.linked(2).await;
    assert!(links.iter().all(|(seen, _)| seen.certificate && seen.authorization.is_none()), "{links:?}");
    let series =
        format!("tunnel_agent_certificate_expiry_timestamp_seconds{{file=\"{}\"}}", files.certificate.display());
    let first = metric(&agent, &series).await;
    issue(50).write_to(fixture.directory.path(), "agent").unwrap();
    kit::wait::becomes(kit::wait::WAIT, "links with the new certificate", async || {
        metric(&agent, "tunnel_agent_links_replaced_total").await > 1.5
    })
    .await;
    server.linked(2).await;
    assert!(metric(&agent, &series).await > first + 44.0 * 24.0 * 60.0 * 60.0, "told of the one in use");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_authority_gets_no_token() {
    let fixture = Fixture::new();
    let server = crate::server::FakeServer::start(&Authority::new("strangers"), &["one"]).await;
    let agent = fixture.agent(&[&server], &[]);
    kit::wait::becomes(kit::wait::WAIT, "a refusal of the server's certificate", async || {
        let (_, text) = crate::fixture::admin(&agent, "/metrics").await;
        text.contains("tunnel_agent_registration_failures_total{reason=\"tls\"}")
    })
    .await;
    assert!(server.seen().is_empty());
}
