//! What `check` finds, each with its remedy.

mod deployment;

use std::collections::BTreeMap;

use api::secret::{ENDPOINT_TYPE_CLUSTER_PROXY, ENDPOINT_TYPE_CONST};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::ResourceExt as _;
use serde::Serialize;

use crate::expiry::{self, Expiry};
use crate::row::{Agents, Row};

pub use self::deployment::{VERSION_LABEL, age, has_container, replicas};

/// Credentials and certificates that expire sooner than this get a warning. In seconds: two weeks.
pub const SOON: i64 = 14 * 86_400;

/// Whether something is as it should be. Shown as one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Good,
    /// It works, but not for long, or it could not be checked.
    Warning,
    Bad,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub mark: Mark,
    pub what: String,
    /// What to do. Empty if the mark is good.
    pub remedy: String,
}

// === impl Mark ===

impl Mark {
    /// The sign, in colour for terminals.
    pub fn sign(self, coloured: bool) -> &'static str {
        match (self, coloured) {
            (Self::Good, false) => "✓",
            (Self::Warning, false) => "‼",
            (Self::Bad, false) => "✗",
            (Self::Good, true) => "\x1b[32m✓\x1b[0m",
            (Self::Warning, true) => "\x1b[33m‼\x1b[0m",
            (Self::Bad, true) => "\x1b[31m✗\x1b[0m",
        }
    }
}

// === impl Finding ===

impl Finding {
    pub fn good(what: impl Into<String>) -> Self {
        Self { mark: Mark::Good, what: what.into(), remedy: String::new() }
    }

    pub fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { mark: Mark::Warning, what: what.into(), remedy: remedy.into() }
    }

    pub fn bad(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { mark: Mark::Bad, what: what.into(), remedy: remedy.into() }
    }
}

/// Findings about the APIService that registers the gateway's API group.
pub fn api_service(service: &APIService, now: i64) -> Vec<Finding> {
    let name = service.name_any();
    let spec = service.spec.clone().unwrap_or_default();
    let conditions = service.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    let available = conditions.iter().find(|condition| condition.type_ == "Available");
    let mut found = vec![match available {
        Some(condition) if condition.status == "True" => Finding::good(format!("APIService {name}: available")),
        Some(condition) => {
            let why = format!(
                "{}: {}",
                condition.reason.clone().unwrap_or_default(),
                condition.message.clone().unwrap_or_default()
            );
            Finding::bad(
                format!("APIService {name}: not available: {why}"),
                unavailable(condition.reason.as_deref().unwrap_or_default()),
            )
        }
        None => Finding::bad(
            format!("APIService {name}: the hub reports no condition"),
            "check that the hub's aggregator is enabled: see its API servers' log",
        ),
    }];
    if spec.insecure_skip_tls_verify == Some(true) {
        found.push(Finding::bad(
            "the hub does not verify the gateway's certificate",
            "set caBundle in the APIService instead of insecureSkipTLSVerify",
        ));
    } else if let Some(pem) = spec.ca_bundle {
        let remedy = "renew the gateway's certificate: see the chart's README";
        found.push(bundle("the CA of the gateway's certificate", &pem.0, now, remedy));
    }
    found
}

fn unavailable(reason: &str) -> &'static str {
    match reason {
        "ServiceNotFound" => {
            "the Service is gone: `kubectl clusters install` again, or correct spec.service of the APIService"
        }
        "MissingEndpoints" | "EndpointsNotFound" => "no replica of the gateway is ready: see its pods and their log",
        "FailedDiscoveryCheck" => {
            "the hub's API servers cannot reach the gateway, or do not trust its certificate: see caBundle, \
             the gateway's log, and hostNetwork in the chart's values"
        }
        _ => "see `kubectl describe apiservice` and the gateway's log",
    }
}

/// Findings about the ConfigMap from which the gateway learns the CA of the hub's front proxy.
pub fn front_proxy(data: &BTreeMap<String, String>, now: i64) -> Vec<Finding> {
    let remedy = "start the hub's API servers with --requestheader-client-ca-file and --proxy-client-cert-file";
    match data.get("requestheader-client-ca-file").filter(|pem| !pem.is_empty()) {
        None => {
            vec![Finding::bad("the hub has no front-proxy CA: the gateway cannot authenticate its callers", remedy)]
        }
        Some(pem) => {
            let remedy = "renew the hub's front-proxy CA; the gateway follows without a restart";
            vec![bundle("the hub's front-proxy CA", pem.as_bytes(), now, remedy)]
        }
    }
}

/// Findings about a cluster. `insecure`: its certificate is not verified.
pub fn cluster(row: &Row, insecure: bool, remedy: &str, now: i64) -> Vec<Finding> {
    let name = &row.name;
    let mut found = vec![match row.status {
        "Ready" => {
            let through = if row.endpoint_type == ENDPOINT_TYPE_CLUSTER_PROXY { ", through the tunnel" } else { "" };
            Finding::good(format!("{name}: Kubernetes {}, {}{through}", row.version, row.latency))
        }
        "Forbidden" => Finding::warning(format!("{name}: not checked: {}", row.reason), remedy),
        "Unhealthy" => {
            Finding::warning(format!("{name}: {}", row.reason), "it answers: check what reported it unhealthy")
        }
        status => Finding::bad(format!("{name}: {status}: {}", row.reason), remedy),
    }];
    if insecure {
        found.push(Finding::bad(
            format!("{name}: its certificate is not verified: anyone in between can get its credential"),
            format!("register its CA: `kubectl clusters join {name}` with a kubeconfig that has it"),
        ));
    }
    if let Some(end) = row.credential_expires_at {
        let credential = ending(&format!("{name}: its credential"), Expiry::At(end), now, &renewal(name, row.rotates));
        found.extend(Some(credential).filter(|finding| finding.mark != Mark::Good));
    }
    if let Some(lacking) = row.agents.and_then(Agents::lacking) {
        let remedy =
            "see the agents' pods and their logs on the member: if no agent is left, the cluster cannot be reached";
        found.push(Finding::warning(format!("{name}: {lacking}"), remedy));
    }
    if row.endpoint_type == ENDPOINT_TYPE_CONST && row.endpoint.starts_with("http://") {
        found.push(Finding::bad(
            format!("{name}: its credential crosses the network in the clear"),
            format!("`kubectl clusters join {name} --endpoint https://…`"),
        ));
    }
    found
}

/// How to give a cluster another credential: only accounts that `join` created have tokens to
/// rotate.
pub fn renewal(name: &str, rotates: bool) -> String {
    if rotates {
        return format!("`kubectl clusters rotate {name}`");
    }
    format!(
        "put another credential into its Secret, or run `kubectl clusters join {name}`, which creates an account \
             for it"
    )
}

/// Finding about something that expires.
pub fn ending(what: &str, expiry: Expiry, now: i64, remedy: &str) -> Finding {
    let left = expiry::left(expiry, now);
    match expiry {
        Expiry::At(end) if end <= now => Finding::bad(format!("{what} has expired"), remedy),
        Expiry::At(end) if end - now < SOON => Finding::warning(format!("{what} expires in {left}"), remedy),
        Expiry::At(_) => Finding::good(format!("{what} expires in {left}")),
        Expiry::Never => Finding::good(format!("{what} does not expire")),
        Expiry::Unknown => Finding::warning(format!("{what} cannot be read"), remedy),
    }
}

/// Finding about the CAs in a PEM file. All of them are trusted: there are two while one replaces
/// the other. An expired CA is only a leftover while another is valid.
pub fn bundle(what: &str, pem: &[u8], now: i64, remedy: &str) -> Finding {
    let Some(ends) = Expiry::of_bundle(pem) else { return ending(what, Expiry::Unknown, now, remedy) };
    let expired = ends.iter().filter(|end| **end <= now).count();
    let (Some(first), Some(last)) = (ends.iter().min(), ends.iter().max()) else {
        return ending(what, Expiry::Unknown, now, remedy);
    };
    if expired > 0 && *last > now {
        return Finding::warning(format!("{expired} of {} certificates of {what} have expired", ends.len()), remedy);
    }
    ending(what, Expiry::At(if expired > 0 { *last } else { *first }), now, remedy)
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};
    use serde_json::json;
    use time::Duration;

    use super::*;
    use crate::expiry::now;

    fn service(conditions: &serde_json::Value, spec: &serde_json::Value) -> APIService {
        serde_json::from_value(
            json!({"metadata": {"name": "v1alpha1.x"}, "spec": spec, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn marks(found: &[Finding]) -> Vec<Mark> {
        found.iter().map(|finding| finding.mark).collect()
    }

    #[test]
    fn an_api_that_is_away_says_why_and_what_to_do() {
        let spec = json!({"groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": true});
        let away =
            json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "no endpoints"}]);
        let found = api_service(&service(&away, &spec), 0);
        assert_eq!(marks(&found), [Mark::Bad, Mark::Bad]);
        assert!(found[0].what.contains("no endpoints") && found[0].remedy.contains("no replica"), "{found:?}");
        let there = json!([{"type": "Available", "status": "True"}]);
        let spec = json!({"groupPriorityMinimum": 1, "versionPriority": 1});
        assert_eq!(marks(&api_service(&service(&there, &spec), 0)), [Mark::Good]);
    }

    #[test]
    fn a_ca_is_warned_of_before_it_ends() {
        let pem = Authority::new("ca").certificate_pem();
        let Expiry::At(end) = Expiry::of_certificate(pem.as_bytes()) else { panic!("it ends") };
        let data = BTreeMap::from([("requestheader-client-ca-file".to_owned(), pem)]);
        let at = |now| front_proxy(&data, now)[0].mark;
        assert_eq!([at(end - SOON - 1), at(end - 60), at(end)], [Mark::Good, Mark::Warning, Mark::Bad]);
        assert_eq!(front_proxy(&BTreeMap::new(), 0)[0].mark, Mark::Bad);
    }

    #[test]
    fn a_member_that_nobody_verifies_is_bad() {
        let row = Row {
            name: "berlin".into(),
            status: "Ready",
            endpoint_type: ENDPOINT_TYPE_CONST.into(),
            endpoint: "https://10.0.0.7:6443".into(),
            ..Row::default()
        };
        assert_eq!(marks(&cluster(&row, false, "", 0)), [Mark::Good]);
        let found = cluster(&row, true, "", 0);
        assert_eq!(marks(&found), [Mark::Good, Mark::Bad]);
        assert!(found[1].what.contains("is not verified") && found[1].remedy.contains("join berlin"), "{found:?}");
    }

    #[test]
    fn an_agent_that_is_away_is_warned_of() {
        let found = |linked| {
            let agents = Some(Agents { linked, wanted: 2 });
            cluster(&Row { name: "oslo".into(), status: "Ready", agents, ..Row::default() }, false, "", 0)
        };
        assert_eq!(marks(&found(2)), [Mark::Good]);
        assert_eq!(marks(&found(1)), [Mark::Good, Mark::Warning]);
        assert_eq!(found(1)[1].what, "oslo: 1 of 2 agents are linked");
        assert!(found(1)[1].remedy.contains("on the member"), "{:?}", found(1));
    }

    #[test]
    fn a_credential_that_ends_is_renewed_by_what_can_renew_it() {
        let remedy = |rotates| {
            let status = "Ready";
            let row = Row { name: "berlin".into(), status, credential_expires_at: Some(60), rotates, ..Row::default() };
            cluster(&row, false, "", 0)[1].remedy.clone()
        };
        assert!(remedy(true).contains("rotate berlin"));
        assert!(!remedy(false).contains("rotate") && remedy(false).contains("join berlin"));
    }

    #[test]
    fn replicas_are_judged_by_what_is_left() {
        let deployment = |wanted: i32, ready: i32| {
            let spec = json!({"replicas": wanted, "selector": {}, "template": {}});
            replicas(
                &serde_json::from_value(
                    json!({"metadata": {"name": "g"}, "spec": spec, "status": {"readyReplicas": ready}}),
                )
                .unwrap(),
            )
            .mark
        };
        assert_eq!(
            [deployment(2, 2), deployment(2, 1), deployment(1, 1), deployment(2, 0)],
            [Mark::Good, Mark::Warning, Mark::Warning, Mark::Bad]
        );
    }

    #[test]
    fn a_chart_older_than_the_program_is_warned_of() {
        let told = |version: &str| {
            let deployment = json!({"metadata": {"name": "g", "labels": {"app.kubernetes.io/version": version}}});
            age(&serde_json::from_value(deployment).unwrap(), "0.10.0").map(|finding| finding.mark)
        };
        assert_eq!([told("0.9.1"), told("0.10.0"), told("0.11.0")], [Some(Mark::Warning), None, None]);
        assert_eq!([told("0.10.0-rc.1"), told("nightly")], [None, None]);
    }

    #[test]
    fn all_of_a_bundle_are_looked_at() {
        let authority = Authority::new("ca");
        let days = |days| {
            let leaf = Leaf::server("ca").valid(Duration::ZERO, Duration::days(days));
            authority.issue(&leaf).chain_pem.clone()
        };
        let expired = authority.issue(&Leaf::server("ca").expired()).chain_pem.clone();
        let of = |pems: &[&str]| bundle("the CA", pems.concat().as_bytes(), now(), "renew it");
        let (good, soon) = (days(400), days(SOON / 86_400 - 1));
        assert_eq!([of(&[&good]).mark, of(&[&good, &good]).mark], [Mark::Good; 2]);
        assert_eq!(of(&[&good, &soon]).mark, Mark::Warning, "the second ends first");
        let old = of(&[&good, &expired]);
        assert_eq!((old.mark, &*old.what), (Mark::Warning, "1 of 2 certificates of the CA have expired"));
        assert_eq!([of(&[&expired]).mark, of(&[&expired, &expired]).mark], [Mark::Bad; 2]);
        for unreadable in
            [&[][..], &["words"], &[&good, "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"]]
        {
            assert!(of(unreadable).what.contains("cannot be read"), "{unreadable:?}");
        }
    }
}
