//! One cluster in the output of `list`.

use std::collections::BTreeMap;
use std::time::Duration;

use api::side::Side;
use fleet::{Cluster, Failure, Kind};
use serde::Serialize;

use crate::expiry::{self, Expiry};
use crate::hops::{self, Hop};
use crate::{span, text_table, trouble};

/// What is known about a cluster.
#[derive(Debug)]
pub struct Facts {
    pub cluster: Cluster,
    /// The version that its API server reported, and how long the request took. `None`: it was not
    /// asked.
    pub answer: Option<Result<(String, Duration), Failure>>,
    /// Agents of a member behind the tunnel. `None`: unknown.
    pub agents: Option<Agents>,
    /// What its Secret says. `None`: the person may not read it.
    pub registered: Option<Registered>,
}

/// What a cluster's Secret says, without its credential.
#[derive(Debug, Clone)]
pub struct Registered {
    pub expiry: Expiry,
    pub alias: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Namespace of its agents on the member, if a join installed them.
    pub agents_in: Option<String>,
    /// The cluster is reached through agents.
    pub tunnelled: bool,
    /// Its credential is the token of an account that a join created.
    pub rotates: bool,
}

/// Agents of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agents {
    /// Agents that are linked: an agent without a link is not ready.
    pub linked: i32,
    pub wanted: i32,
}

/// A cluster in a table, or in a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub name: String,
    pub status: &'static str,
    /// Why it is not ready; empty if it is.
    pub reason: String,
    /// As in `v1.35.0`; empty if unknown.
    pub version: String,
    /// Time of one request from here, through hub and gateway, in milliseconds.
    pub latency_millis: Option<u64>,
    #[serde(skip)]
    pub latency: String,
    pub endpoint_type: String,
    /// Empty for clusters without a fixed URL.
    pub endpoint: String,
    pub credential_type: String,
    /// Seconds since 1970; `None`: never, or unknown.
    pub credential_expires_at: Option<i64>,
    /// The time that it has left, in a word: `90d`, `never`, `expired`; `-` if unknown.
    pub credential_expires_in: String,
    /// `rotate` can renew its credential.
    #[serde(skip)]
    pub rotates: bool,
    /// `None`: it has none, or they are unknown.
    pub agents: Option<Agents>,
    pub alias: String,
    pub labels: BTreeMap<String, String>,
}

// === impl Agents ===

impl Agents {
    /// A message, if some of them are not linked.
    pub fn lacking(self) -> Option<String> {
        let Self { linked, wanted } = self;
        (linked < wanted).then(|| format!("{linked} of {wanted} agents are linked"))
    }
}

/// Longest reported reason, in characters.
const LONGEST_REASON: usize = 4096;

const HEADS: [&str; 9] =
    ["NAME", "STATUS", "VERSION", "LATENCY", "ENDPOINT-TYPE", "AGENTS", "CREDENTIAL", "EXPIRES", "ALIAS"];
const MORE: [&str; 3] = ["ENDPOINT", "LABELS", "REASON"];

// === impl Row ===

impl Row {
    /// The row at `now` (seconds since 1970).
    pub fn new(facts: &Facts, now: i64) -> Self {
        let Facts { cluster, answer, agents, registered } = facts;
        let (status, reason) = standing(facts);
        let seen = answer.as_ref().and_then(|answer| answer.as_ref().ok());
        let expiry = registered.as_ref().map_or(Expiry::Unknown, |registered| registered.expiry);
        Self {
            name: cluster.name.to_string(),
            status,
            reason,
            version: seen.map(|(version, _)| version.clone()).unwrap_or_default(),
            latency_millis: seen.map(|(_, took)| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            latency: seen.map(|(_, took)| span::took(*took)).unwrap_or_default(),
            endpoint_type: cluster.endpoint.as_ref().map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
            endpoint: cluster.address.clone().unwrap_or_default(),
            credential_type: cluster.credential.clone().unwrap_or_default(),
            credential_expires_at: if let Expiry::At(end) = expiry { Some(end) } else { None },
            credential_expires_in: expiry::left(expiry, now),
            rotates: registered.as_ref().is_some_and(|registered| registered.rotates),
            agents: *agents,
            alias: registered.as_ref().and_then(|registered| registered.alias.clone()).unwrap_or_default(),
            labels: registered.as_ref().map(|registered| registered.labels.clone()).unwrap_or_default(),
        }
    }

    fn cells(&self, wide: bool) -> Vec<String> {
        let labels: Vec<_> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let agents = self.agents.map(|Agents { linked, wanted }| format!("{linked}/{wanted}")).unwrap_or_default();
        let narrow = [
            &self.name,
            self.status,
            &self.version,
            &self.latency,
            &self.endpoint_type,
            &agents,
            &self.credential_type,
            &self.credential_expires_in,
            &self.alias,
        ];
        let more = [self.endpoint.clone(), labels.join(","), self.reason.clone()];
        let cells = narrow.into_iter().map(str::to_owned).chain(more.into_iter().filter(|_| wide));
        cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { text_table::tame(&cell) }).collect()
    }
}

/// Rows as a table.
pub fn table(rows: &[Row], wide: bool) -> String {
    let heads: Vec<_> = HEADS.into_iter().chain(MORE.into_iter().filter(|_| wide)).collect();
    text_table::lay_out(&heads, &rows.iter().map(|row| row.cells(wide)).collect::<Vec<_>>())
}

/// The status of the cluster in one word, and why it cannot be used.
fn standing(facts: &Facts) -> (&'static str, String) {
    let reported = facts.cluster.health.as_ref().filter(|health| !health.healthy && !health.healthy_reason.is_empty());
    match (&facts.answer, reported) {
        (None, None) => ("Unknown", String::new()),
        (Some(Err(failure)), _) => (word(failure), trouble::cause(failure)),
        (_, Some(health)) => {
            ("Unhealthy", format!("reported: {}", text_table::cut(&health.healthy_reason, LONGEST_REASON)))
        }
        (Some(Ok(_)), None) => ("Ready", String::new()),
    }
}

/// The status that a failure means for a user of the cluster.
fn word(failure: &Failure) -> &'static str {
    match (failure.side, failure.kind) {
        // The hub has accepted the person's credential: it has just listed the clusters.
        _ if hops::is_passed_on(failure) => "CredentialRefused",
        (Some(Side::Caller), Kind::Answered(403)) => "Forbidden",
        (Some(Side::Caller), _) => "Unregistered",
        (Some(Side::Hub), _) => "HubFailed",
        (Some(Side::Gateway), _) => "GatewayFailed",
        (Some(Side::Tunnel), _) => "TunnelDown",
        (Some(Side::Member), _) if Hop::of(failure) == Hop::Credential => {
            if failure.message.contains("rejected the") {
                "CredentialRefused"
            } else {
                "CredentialFailed"
            }
        }
        (Some(Side::Member), _) => "Unreachable",
        (None, Kind::Late) => "Late",
        (None, _) => "Failed",
    }
}

#[cfg(test)]
mod tests {
    use api::cluster_name::ClusterName;
    use api::health::Health;
    use fleet::EndpointType;

    use super::*;

    fn facts(answer: Option<Result<(String, Duration), Failure>>) -> Facts {
        let cluster = Cluster {
            name: ClusterName::parse("berlin").unwrap(),
            labels: BTreeMap::new(),
            uid: String::new(),
            endpoint: Some(EndpointType::Const),
            address: Some("https://10.0.0.7:6443".into()),
            insecure: false,
            credential: Some("ServiceAccountToken".into()),
            health: Some(Health::default()),
        };
        Facts { cluster, answer, agents: None, registered: None }
    }

    #[test]
    fn a_row_says_what_is_known_and_no_more() {
        let ready = Row::new(&facts(Some(Ok(("v1.35.4".into(), Duration::from_millis(12))))), 0);
        let mut known = facts(None);
        let labels = BTreeMap::from([("env".to_owned(), "prod".to_owned())]);
        known.registered = Some(Registered {
            expiry: Expiry::At(86_400 * 90),
            alias: Some("B".into()),
            labels,
            agents_in: None,
            tunnelled: true,
            rotates: true,
        });
        known.agents = Some(Agents { linked: 1, wanted: 2 });
        let known = Row::new(&known, 0);
        let expected = "\
NAME     STATUS    VERSION   LATENCY   ENDPOINT-TYPE   AGENTS   CREDENTIAL            EXPIRES   ALIAS   ENDPOINT                LABELS     REASON
berlin   Ready     v1.35.4   12ms      Const           -        ServiceAccountToken   -         -       https://10.0.0.7:6443   -          -
berlin   Unknown   -         -         Const           1/2      ServiceAccountToken   90d       B       https://10.0.0.7:6443   env=prod   -
";
        assert_eq!(table(&[ready, known], true), expected);
    }

    #[test]
    fn a_report_counts_only_if_it_has_a_reason() {
        let mut facts = facts(Some(Ok(("v1".into(), Duration::ZERO))));
        assert_eq!(Row::new(&facts, 0).status, "Ready");
        facts.cluster.health = Some(Health { healthy: false, healthy_reason: "disk full".into() });
        let row = Row::new(&facts, 0);
        assert_eq!((row.status, &*row.reason), ("Unhealthy", "reported: disk full"));
    }

    #[test]
    fn failures_are_told_by_the_side_that_has_to_act() {
        let failed = |side, kind, message: &str| {
            let failure = Failure { side, kind, ..Failure::own(message) };
            Row::new(&facts(Some(Err(failure))), 0).status
        };
        assert_eq!(failed(Some(Side::Caller), Kind::Answered(403), "is forbidden"), "Forbidden");
        assert_eq!(failed(Some(Side::Caller), Kind::Answered(401), "Unauthorized"), "CredentialRefused");
        assert_eq!(failed(Some(Side::Tunnel), Kind::Answered(503), "dial tcp"), "TunnelDown");
        assert_eq!(failed(Some(Side::Member), Kind::Answered(503), "dial tcp"), "Unreachable");
        let refused = "cluster \"berlin\" rejected the registered credential";
        assert_eq!(failed(Some(Side::Member), Kind::Answered(502), refused), "CredentialRefused");
        let issued = "cluster \"berlin\" rejected the credential that its external command issued";
        assert_eq!(failed(Some(Side::Member), Kind::Answered(502), issued), "CredentialRefused");
        let unissued = "cluster berlin: failed to issue credential from external command: exit status 1";
        assert_eq!(failed(Some(Side::Member), Kind::Answered(502), unissued), "CredentialFailed");
        assert_eq!(failed(None, Kind::Late, "no answer"), "Late");
    }
}
