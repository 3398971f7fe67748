//! The label values that the chart's alerts select are the program's own.

use fleet::Kind;
use k8s_openapi::api::core::v1::ObjectReference;
use register::claims::Object;

use super::*;

const ALERTS: &str = include_str!("../../../charts/cluster-gateway/files/alerts.yaml");

/// Metrics after each event that is counted by state or code has happened once.
fn everything() -> String {
    let (mut registry, reports) = (Registry::default(), Arc::new(Reports::default()));
    let metrics = Metrics::register(&mut registry, Arc::clone(&reports));
    reports.see(&Object::new("capi", ["cluster.x-k8s.io", "Cluster"], "n", "c1"), "c1", ObjectReference::default());
    for state in [Judged::Available, Judged::NotReady, Judged::Unreachable, Judged::Unknown, Judged::Held] {
        metrics.availability.put(&format!("{state:?}"), state);
    }
    for state in [ProfileState::Published, ProfileState::Taken, ProfileState::Failed] {
        metrics.profiles.settle("n", &format!("{state:?}"), state);
    }
    for state in [AccountState::Filled, AccountState::Waiting, AccountState::Failed] {
        metrics.accounts.settle(&("n".to_owned(), format!("{state:?}")), state);
    }
    for failure in [Kind::Answered(401), Kind::Answered(429), Kind::Answered(503), Kind::Late, Kind::Unanswered] {
        metrics.delivery.asked("c1", Some(failure));
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

/// Metrics of the controllers with a label, and each value that alerts select.
fn selected() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut found = Vec::new();
    for query in ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: ")) {
        for (start, _) in query.match_indices("cluster_gateway_") {
            let Some((metric, rest)) = query[start..].split_once('{') else { continue };
            let is_ours = ["controllers_", "delivery_", "placement_", "argocd_"].iter().any(|of| metric.contains(of));
            let is_name = metric.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
            let Some((selector, _)) = rest.split_once('}').filter(|_| is_ours && is_name) else { continue };
            let (label, values) = selector.split_once('=').unwrap();
            assert!(!selector.contains(',') && !label.ends_with('!'), "not understood: {selector}");
            let values = values.trim_start_matches('~').trim_matches('"').split('|');
            found.extend(values.map(|value| (metric, label, value)));
        }
    }
    found
}

/// A dot matches any character.
fn matches(pattern: &str, value: &str) -> bool {
    let fits = |(pattern, is): (char, char)| pattern == '.' || pattern == is;
    pattern.chars().count() == value.chars().count() && pattern.chars().zip(value.chars()).all(fits)
}

#[test]
fn each_value_that_an_alert_selects_is_one_that_the_program_writes() {
    let (text, selected) = (everything(), selected());
    assert!(selected.contains(&("cluster_gateway_controllers_probed_clusters", "state", "held")), "{selected:?}");
    assert!(selected.len() >= 10, "{selected:?}");
    for (metric, label, value) in selected {
        let of_label = |line: &str| {
            let (_, rest) = line.strip_prefix(metric)?.split_once(&format!("{label}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let written: Vec<_> = text.lines().filter_map(of_label).collect();
        assert!(written.iter().any(|written| matches(value, written)), "{metric}: no {value} among {written:?}");
    }
}
