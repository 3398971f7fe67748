//! Tests the values and the names of the metrics.

use std::sync::atomic::Ordering;

use tunnel::{Hop, Reason};

use super::*;

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).expect("into a String");
    text
}

#[test]
fn the_exposition_is_the_one_dashboards_read() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let cluster = ClusterName::parse("east").expect("a name");
    let gauge = Arc::new(tunnel::Gauge::default());
    gauge.forth.store(3, Ordering::Relaxed);
    gauge.back.store(5, Ordering::Relaxed);
    let account = net::budget::Account::unlimited(Arc::clone(&gauge));
    account.take(2);
    let refusal = Refusal::new(Hop::Agent, Reason::Unreachable, "connection refused");
    metrics.attempted(Some(&cluster), Outcome::Opened, Duration::from_millis(7));
    metrics.attempted(Some(&cluster), Outcome::Refused(&refusal), Duration::from_secs(1));
    metrics.attempted(None, Outcome::Cancelled, Duration::from_secs(1));
    let open = metrics.open(&cluster, Arc::clone(&gauge));
    let connected = metrics.connected("tls", "h2");
    metrics.ended(&cluster, None);
    metrics.ended(&cluster, Some(io::ErrorKind::QuotaExceeded));
    metrics.ended(&cluster, Some(io::ErrorKind::ConnectionReset));
    metrics.turned_away("tls");
    metrics.reload_failed("certificate");
    // The series of a family have no fixed order.
    let told = text(&registry);
    let mut lines: Vec<_> = told.lines().filter(|line| !line.contains("_bucket") || line.contains("+Inf")).collect();
    lines.sort_unstable();
    insta::assert_snapshot!("open", lines.join("\n"));

    // Bytes that an ended stream has moved stay counted; bytes that it held do not.
    drop((open, connected, account));
    gauge.forth.store(100, Ordering::Relaxed);
    let told = text(&registry);
    for line in [
        "tunnel_server_streams_open{cluster=\"east\"} 0",
        "tunnel_server_held_bytes{cluster=\"east\"} 0",
        "tunnel_server_relayed_bytes_total{cluster=\"east\",direction=\"to_member\"} 3",
        "tunnel_server_frontend_connections{listener=\"tls\",protocol=\"h2\"} 0",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
}

#[test]
fn clusters_beyond_the_limit_share_a_series() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    for number in 0..MOST_CLUSTERS + 5 {
        let cluster = ClusterName::parse(&format!("c{number}")).expect("a name");
        metrics.attempted(Some(&cluster), Outcome::Cancelled, Duration::ZERO);
    }
    let told = text(&registry);
    assert!(told.contains("{cluster=\"other\",hop=\"\",outcome=\"cancelled\"} 5"));
    assert_eq!(told.matches("outcome=\"cancelled\"").count(), MOST_CLUSTERS + 1);
}
