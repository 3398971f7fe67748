use net::tls::client_files::ClientFiles;
use prometheus_client::registry::Registry;
use telemetry::readiness::Readiness;
use tokio::sync::Notify;
use tunnel::{ClusterName, Destination, Settings};

use super::*;
use crate::credentials::Credentials;
use crate::forward::Forwarder;
use crate::links::Links;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::streams::Streams;
use crate::targets::Targets;

/// Keepers of a name at whose addresses nothing listens.
fn keepers() -> LinkKeepers {
    let metrics = Metrics::register(&mut Registry::default());
    let cluster = ClusterName::parse("c1").unwrap();
    let targets = Targets::new(cluster.clone(), Destination::parse("127.0.0.1:1").unwrap(), Vec::new());
    let forwarder = Forwarder::new(targets, Duration::from_secs(1), Arc::new(Streams::new(1)), metrics.clone());
    let connector = Connector {
        cluster,
        agent: "agent".into(),
        server_name: None,
        credentials: Arc::new(Credentials::new(ClientFiles::default(), None, metrics.clone())),
        outbound: Arc::new(Outbound::direct()),
        settings: Settings::default(),
        links: Links::new(2, &Readiness::default()),
        forwarder: Arc::new(forwarder),
        metrics,
        drain: net::drain::Drain::new(),
    };
    let name = Destination::parse("tunnel.example:1").unwrap();
    let verified = rustls_pki_types::ServerName::try_from("tunnel.example").unwrap();
    let server = Arc::new(Server { name, verified, look_again: Notify::new() });
    LinkKeepers { connector: Arc::new(connector), server, tasks: JoinSet::new(), known: HashMap::new() }
}

fn address(last: u8) -> SocketAddr {
    ([127, 0, 0, last], 1).into()
}

fn known(keepers: &LinkKeepers) -> Vec<SocketAddr> {
    let mut known: Vec<_> = keepers.known.keys().map(|address| address.unwrap()).collect();
    known.sort_unstable();
    known
}

#[tokio::test]
async fn places_come_and_go_with_the_names_addresses() {
    let mut keepers = keepers();
    keepers.update(&[Some(address(1)), Some(address(2))]);
    assert_eq!(known(&keepers), [address(1), address(2)]);
    keepers.update(&[Some(address(2)), Some(address(3))]);
    // A keeper without links ends when the name no longer resolves to its address, and not before.
    kit::wait::within(kit::wait::WAIT, "the end of the first place", async {
        while known(&keepers).contains(&address(1)) {
            tokio::task::yield_now().await;
            keepers.update(&[Some(address(2)), Some(address(3))]);
        }
    })
    .await;
    assert_eq!(known(&keepers), [address(2), address(3)]);
    keepers.update(&[Some(address(1)), Some(address(2)), Some(address(3))]);
    assert_eq!(known(&keepers).len(), 3, "it may come back");
}

#[tokio::test]
async fn of_too_many_addresses_the_known_ones_are_kept() {
    let mut keepers = keepers();
    keepers.update(&[Some(address(99))]);
    let found: Vec<_> = (1..=100).rev().map(address).collect();
    let chosen = keepers.choose(found);
    assert_eq!(chosen.len(), MOST_ADDRESSES);
    assert_eq!(chosen[..2], [Some(address(99)), Some(address(1))]);
}
