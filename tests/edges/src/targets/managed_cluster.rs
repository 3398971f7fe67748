//! Any `ManagedCluster`, whose writer may be a stranger: it is read as if nothing had a limit, but
//! for the labels, the alias, the addresses and the conditions of which no more is kept. Nothing of
//! one that is not accepted counts but its name and version.
//!
//! Input: its JSON ([`repeated()`]).

use std::collections::BTreeMap;

use api::hub_object::HubMeta;
use api::managed_cluster::{ClientConfig, Condition, HEAVIEST_LABELS, ManagedCluster, Spec, Status};
use api::secret::{ALIAS_ANNOTATION, MOST_FALLBACKS};
use api::weight;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::repeated::repeated;

pub const WORDS: &[&str] = &[
    "{\"metadata\":{\"name\":\"c\",",
    "\"uid\":\"u\",\"resourceVersion\":\"7\",",
    "\"creationTimestamp\":null",
    "\"labels\":{<3\"\":\"\",>\"a\":\"b\"}",
    "\"labels\":null",
    "\"annotations\":{\"cluster.core.oam.dev/cluster-alias\":\"",
    "\"spec\":{\"hubAcceptsClient\":true",
    "\"managedClusterClientConfigs\":[",
    "{\"url\":\"https://a:6443\",\"caBundle\":\"YQ==\"}",
    "\"status\":{\"conditions\":[",
    "{\"type\":\"ManagedClusterConditionAvailable\",\"status\":\"Unknown\",\"reason\":\"r\"}",
    "<1{},>",
    "<4\"\":\"\",>",
    "<3a>",
    "\\u0061",
    "\\ud800",
    "null",
    "1e999",
    "[]",
    "{}",
    "\"\"",
    ",",
    "}",
    "]}}",
];

/// The condition that is read.
const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// Bytes of an alias that is kept.
const LONGEST_ALIAS: usize = 1 << 10;

/// The object without a limit.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Plain {
    metadata: HubMeta,
    spec: Option<PlainSpec>,
    status: Option<PlainStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PlainSpec {
    hub_accepts_client: bool,
    managed_cluster_client_configs: Option<Vec<ClientConfig>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlainStatus {
    conditions: Option<Vec<Condition>>,
}

pub fn check(input: &[u8]) {
    let text = repeated(input);
    let read = serde_json::from_slice::<ManagedCluster>(&text);
    let plain = serde_json::from_slice::<Plain>(&text);
    let Ok(cluster) = read else { return assert!(plain.is_err(), "it is not read") };
    assert!(serde_json::from_slice::<IgnoredAny>(&text).is_ok(), "it is no JSON");
    check_limits(&cluster, &text);
    if let Ok(plain) = plain {
        check_same(&cluster, plain);
    }
    check_known(&cluster);
}

fn check_limits(cluster: &ManagedCluster, text: &[u8]) {
    let HubMeta { labels, annotations, labels_are_cut, .. } = &cluster.metadata;
    assert!(weight::of_texts(labels) <= HEAVIEST_LABELS);
    if *labels_are_cut {
        let most = text.split(|byte| *byte == b':').count();
        let weighs = most * weight::of_text("", "") + text.len();
        assert!(labels.is_empty() && weighs > HEAVIEST_LABELS, "{weighs} bytes at most are cut");
    }
    let is_alias = |key: &str, alias: &str| key == ALIAS_ANNOTATION && alias.len() <= LONGEST_ALIAS;
    assert!(annotations.iter().all(|(key, alias)| is_alias(key, alias)));
    assert!(cluster.spec.managed_cluster_client_configs.len() <= 1 + MOST_FALLBACKS);
    assert!(cluster.status.conditions.len() <= 1);
}

fn check_same(cluster: &ManagedCluster, plain: Plain) {
    let (read, metadata) = (&cluster.metadata, plain.metadata);
    let are_cut = read.labels_are_cut;
    assert!(are_cut || weight::of_texts(&metadata.labels) <= HEAVIEST_LABELS);
    let labels = if are_cut { BTreeMap::new() } else { metadata.labels };
    let mut annotations = metadata.annotations;
    annotations.retain(|key, alias| key == ALIAS_ANNOTATION && alias.len() <= LONGEST_ALIAS);
    assert_eq!(*read, HubMeta { labels, annotations, labels_are_cut: are_cut, ..metadata });
    let spec = plain.spec.unwrap_or_default();
    assert_eq!(cluster.spec.hub_accepts_client, spec.hub_accepts_client);
    let mut addresses = spec.managed_cluster_client_configs.unwrap_or_default();
    addresses.truncate(1 + MOST_FALLBACKS);
    assert_eq!(cluster.spec.managed_cluster_client_configs, addresses);
    let conditions = plain.status.unwrap_or_default().conditions.unwrap_or_default();
    let available = conditions.iter().find(|condition| condition.r#type == AVAILABLE);
    assert_eq!(cluster.status.conditions.first(), available);
}

fn check_known(cluster: &ManagedCluster) {
    let known = cluster.clone().known();
    let is_accepted = cluster.spec.hub_accepts_client;
    let (spec, status) =
        if is_accepted { (cluster.spec.clone(), cluster.status.clone()) } else { (Spec::default(), Status::default()) };
    let (name, uid) = (cluster.metadata.name.clone(), cluster.metadata.uid.clone());
    let resource_version = cluster.metadata.resource_version.clone();
    let metadata = HubMeta { name, uid, resource_version, ..HubMeta::default() };
    assert_eq!(known, ManagedCluster { metadata, spec, status });
    assert_eq!((known.addresses().is_some(), cluster.addresses().is_some()), (is_accepted, is_accepted));
    assert_eq!(known.health(None), cluster.health(None));
}
