use net::drain::Drain;
use net::tls::client_files::ClientFiles;
use prometheus_client::registry::Registry;
use telemetry::readiness::Readiness;
use tokio::sync::Notify;
use tunnel::{ClusterName, Destination, Settings};

use self::server::FakeServer;
use super::*;
use crate::credentials::Credentials;
use crate::files::TokenFile;
use crate::forward::Forwarder;
use crate::links::Links;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::streams::Streams;
use crate::targets::Targets;

#[path = "../../../tests/agent/server.rs"]
#[expect(dead_code, reason = "the tests of the whole agent use more of it")]
mod server;

/// A connector that makes one link to each server, with the CA and the token in `directory`.
fn connector(directory: &std::path::Path) -> Arc<Connector> {
    let metrics = Metrics::register(&mut Registry::default());
    let cluster = ClusterName::parse("c1").unwrap();
    let targets = Targets::new(cluster.clone(), Destination::parse("127.0.0.1:1").unwrap(), Vec::new());
    let forwarder = Forwarder::new(targets, Duration::from_secs(1), Arc::new(Streams::new(1)), metrics.clone());
    let files = ClientFiles { ca: Some(directory.join("ca.crt")), identity: None };
    let token = TokenFile::new(directory.join("token"));
    Arc::new(Connector {
        cluster,
        agent: "agent".into(),
        server_name: None,
        credentials: Arc::new(Credentials::new(files, Some(token), metrics.clone())),
        outbound: Arc::new(Outbound::direct()),
        settings: Settings::default(),
        links: Links::new(1, &Readiness::default()),
        forwarder: Arc::new(forwarder),
        metrics,
        drain: Drain::new(),
    })
}

#[tokio::test]
async fn links_are_renewed_where_the_name_no_longer_leads() {
    let (directory, authority) = (tempfile::tempdir().unwrap(), kit::pki::Authority::new("tunnel-ca"));
    authority.write_to(directory.path(), "ca").unwrap();
    let write = |token: &str| std::fs::write(directory.path().join("token"), token).unwrap();
    write("first");
    let fake = FakeServer::start(&authority, &["one"]).await;
    let connector = connector(directory.path());
    let name = Destination::parse(&format!("tunnel.example:{}", fake.address.port())).unwrap();
    let verified = rustls_pki_types::ServerName::try_from("tunnel.example").unwrap();
    let server = Arc::new(Server { name, verified, look_again: Notify::new() });
    let (presence, present) = watch::channel(true);
    let keeper = tokio::spawn(LinkKeeper::new(Arc::clone(&connector), server, Some(fake.address), present).run());
    fake.linked(1).await;
    presence.send(false).unwrap();
    write("second");
    connector.credentials.current().unwrap();
    fake.until("a link with the new token, and no other", |fake| {
        let tokens: Vec<_> = fake.links().into_iter().map(|(seen, _)| seen.authorization.unwrap()).collect();
        (tokens == ["Bearer second"]).then_some(())
    })
    .await;
    assert_eq!(fake.seen().len(), 2, "none beyond that");
    keeper.abort();
}
