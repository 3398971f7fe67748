//! Any body that writes a Cluster of Karmada's: a Cluster within its limits, which repeats nothing
//! of its registration, or a refusal that the client can read.
//!
//! Input: in the first line the kind of write (`create`, `put`, `merge`, `json`), with ` status`
//! for `/status`; then the body.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use api::health::Health;
use api::karmada::ANNOTATION;
use api::karmada_cluster::MOST_KEPT;
use api::karmada_cluster::change::{DesiredCluster, Part, Refused, Sent};
use api::karmada_cluster::cluster::{Cluster, is_ours};
use api::secret::{CREDENTIAL_TYPE_LABEL, ClusterSpec, ENDPOINT_KEY, MissingCa, SecretRules, SecretView, TOKEN_KEY};
use api::status::Status;
use serde_json::Value;

pub const WORDS: &[&str] = &[
    "create\n",
    "put\n",
    "put status\n",
    "merge\n",
    "merge status\n",
    "json\n",
    "{\"apiVersion\":\"cluster.karmada.io/v1alpha1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"c1\"},\"spec\":{",
    "\"syncMode\":\"Push\"",
    "\"syncMode\":\"Pull\"",
    "\"apiEndpoint\":\"https://m:6443\"",
    "\"secretRef\":{\"namespace\":\"ns\",\"name\":\"s\"}",
    "\"taints\":[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]",
    "\"zones\":[\"a\"]",
    "\"proxyURL\":\"http://u:p@proxy\"",
    "\"metadata\":{\"labels\":{\"cluster.core.oam.dev/cluster-credential-type\":\"X509Certificate\"}}",
    "\"resourceVersion\":\"1\"",
    "\"uid\":\"u\"",
    "\"status\":{",
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]",
    "[{\"op\":\"add\",\"path\":\"/spec/region\",\"value\":\"eu\"}]",
    "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/status/a\"}",
    "{\"op\":\"move\",\"from\":\"/metadata\",\"path\":\"/spec\"}",
    "{\"op\":\"test\",\"path\":\"/metadata/name\",\"value\":\"c1\"}",
    "/metadata/labels/core.oam.dev~1x",
    "null",
    "[]",
    "{}",
    "1e999",
];

const NAME: &str = "c1";
const NOW: &str = "2026-11-26T12:00:00Z";

pub fn check(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let body = input.get(at + 1..).unwrap_or_default();
    let (how, part) = match input[..at].strip_suffix(b" status") {
        Some(how) => (how, Part::Status),
        None => (&input[..at], Part::Whole),
    };
    let secret = current();
    let health = Health { healthy: true, healthy_reason: String::new() };
    let cluster = Cluster::new(&secret, &health, UNIX_EPOCH);
    let changed = |sent: Sent| sent.changed(&cluster, part, NOW);
    let wanted = match how {
        b"create" => Sent::object(body).and_then(|sent| sent.created(NOW)),
        b"merge" => Sent::merge(body).and_then(changed),
        b"json" => Sent::operations(body).and_then(changed),
        _ => Sent::object(body).and_then(changed),
    };
    match wanted {
        Ok(wanted) => {
            assert!(how == b"create" || wanted.name == NAME, "{} is another cluster", wanted.name);
            if part == Part::Status && how != b"create" {
                assert!(wanted.labels == cluster.labels && wanted.annotations == cluster.annotations);
                assert_eq!(format!("{:?}", wanted.spec), format!("{:?}", cluster.spec));
            }
            hold(&wanted, &secret);
        }
        Err(refused) => told(refused),
    }
}

fn current() -> ClusterSpec {
    let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), "ServiceAccountToken".to_owned())]);
    let kept = r#"{"spec": {"region": "eu"}, "status": {"kubernetesVersion": "v1.35.0"}}"#;
    let data = [(ENDPOINT_KEY, "https://m:6443"), (TOKEN_KEY, "t")];
    let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into();
    let secret = SecretView {
        name: NAME,
        uid: "u",
        resource_version: "1",
        creation_timestamp: Some("2026-11-21T10:00:00Z"),
        labels: &labels,
        annotations: &BTreeMap::from([(ANNOTATION.to_owned(), kept.to_owned())]),
        data: &data,
    };
    let rules = SecretRules { allow_http: false, missing_ca: MissingCa::SystemRoots };
    ClusterSpec::from_secret(&secret, rules).expect("a cluster")
}

fn hold(wanted: &DesiredCluster, secret: &ClusterSpec) {
    assert!(!wanted.labels.keys().any(|key| is_ours(key)), "{:?}", wanted.labels);
    match wanted.kept(secret) {
        Ok(kept) => assert!(kept.len() <= MOST_KEPT && serde_json::from_str::<Value>(&kept).is_ok()),
        Err(refused) => told(refused),
    }
}

fn told(refused: Refused) {
    let status = Status::from(refused);
    assert!([400, 409, 413, 422].contains(&status.code().as_u16()), "{} {}", status.code(), status.message());
    assert!(!status.message().is_empty());
}
