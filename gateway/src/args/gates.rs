//! `--feature-gates`: turns optional behaviour on.
//!
//! The names, defaults and syntax are those of the Go cluster-gateway. Gates of its API server
//! library are accepted without effect, so that its charts continue to work. An unknown name may be
//! a typing error that leaves a safeguard off, so there is a warning.

use crate::config::Gates;

/// The parsed `--feature-gates`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub gates: Gates,
    /// Known to Kubernetes, but without effect here.
    pub idle: Vec<String>,
    /// Unknown names.
    pub unknown: Vec<String>,
    /// Pairs that are not of the form `Gate=true` or `Gate=false`.
    pub malformed: Vec<String>,
}

/// Gates of `k8s.io/apiserver`, `k8s.io/component-base` and `k8s.io/client-go` that charts are
/// known to pass, or operators may pass, and the two that stand for groups of gates.
const OF_THE_LIBRARY: [&str; 24] = [
    "APIListChunking",
    "APIPriorityAndFairness",
    "APIResponseCompression",
    "APIServerIdentity",
    "APIServerTracing",
    "AdmissionWebhookMatchConditions",
    "AggregatedDiscoveryEndpoint",
    "AggregatedDiscoveryRemoveBetaType",
    "AllAlpha",
    "AllBeta",
    "AuthorizeWithSelectors",
    "ComponentSLIs",
    "ConsistentListFromCache",
    "ContextualLogging",
    "KMSv1",
    "LoggingAlphaOptions",
    "LoggingBetaOptions",
    "OpenAPIEnums",
    "RemainingItemCount",
    "ServerSideApply",
    "StorageVersionHash",
    "StreamingCollectionEncodingToJSON",
    "UnauthenticatedHTTP2DOSMitigation",
    "WatchList",
];

// === impl Gates ===

impl Gates {
    /// The last value of a gate counts.
    pub(super) fn parse(pairs: &[String]) -> Parsed {
        let mut parsed = Parsed::default();
        for pair in pairs.iter().map(|pair| pair.trim()).filter(|pair| !pair.is_empty()) {
            let Some((name, on)) = pair.split_once('=').and_then(|(name, value)| Some((name.trim(), boolean(value)?)))
            else {
                parsed.malformed.push(pair.to_owned());
                continue;
            };
            let gates = &mut parsed.gates;
            match name {
                "" => parsed.malformed.push(pair.to_owned()),
                "ClientIdentityPenetration" => gates.client_identity_penetration = on,
                "HealthinessCheck" => gates.healthiness_check = on,
                "SecretCache" => gates.secret_cache = on,
                "OCMClusterCache" => gates.ocm_cluster_cache = on,
                name if OF_THE_LIBRARY.contains(&name) => parsed.idle.push(pair.to_owned()),
                _ => parsed.unknown.push(pair.to_owned()),
            }
            if !on && matches!(name, "SecretCache" | "OCMClusterCache") {
                parsed.idle.push(pair.to_owned());
            }
        }
        parsed
    }
}

/// Parses like Go's `strconv.ParseBool`.
fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Parsed {
        Gates::parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_named_keeps_its_default() {
        assert_eq!(parse(""), Parsed::default());
        let parsed = parse("ClientIdentityPenetration=true,SecretCache=false");
        let expected = Gates { client_identity_penetration: true, secret_cache: false, ..Gates::default() };
        let idle = vec!["SecretCache=false".to_owned()];
        assert_eq!(parsed, Parsed { gates: expected, idle, ..Parsed::default() });
    }

    #[test]
    fn values_are_gos_and_the_last_one_counts() {
        assert!(parse("HealthinessCheck=false,HealthinessCheck= T").gates.healthiness_check);
        assert!(!parse("OCMClusterCache=0").gates.ocm_cluster_cache);
    }

    #[test]
    fn the_librarys_gates_unknown_ones_and_broken_ones_are_told_apart() {
        let parsed = parse("APIPriorityAndFairness=false,ClientIdentityPenetraion=true,Broken,X=yes,=true");
        assert_eq!(parsed.idle, ["APIPriorityAndFairness=false"]);
        assert_eq!(parsed.unknown, ["ClientIdentityPenetraion=true"]);
        assert_eq!(parsed.malformed, ["Broken", "X=yes", "=true"]);
        assert_eq!(parsed.gates, Gates::default());
    }
}
