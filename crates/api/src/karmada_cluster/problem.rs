//! Validates a Cluster (`pkg/apis/cluster/validation/validation.go`), with the messages of
//! `k8s.io/apimachinery/pkg/util/validation/field`.

use std::collections::{BTreeMap, BTreeSet};

use super::spec::{PULL, PUSH, SecretRef, Spec, Taint};
use crate::cluster_name::is_label;
use crate::go_text::quoted;
use crate::selector::label::{is_key, is_value};
use crate::status::StatusCause;

/// Longest name: Karmada makes the name of the cluster's namespace from it.
const LONGEST_NAME: usize = 48;
/// Most annotations, taints or zones of a cluster.
const MOST: usize = 256;
const FORM: &str = "; desired format: hostname, hostname:port, IP or IP:port";
const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                     must start and end with an alphanumeric character, and must be no more than 63 bytes";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character, with an optional DNS subdomain prefix and '/'";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                         start and end with an alphanumeric character";

/// An invalid field: `metav1.StatusCause` of a 422.
pub(super) type Problem = StatusCause;

/// The problem with the name of a new Cluster. Clusters that were registered in another way may
/// have other names.
pub(super) fn name(name: &str) -> Option<Problem> {
    match () {
        () if name.len() > LONGEST_NAME => {
            Some(invalid("metadata.name", name, &format!("must be no more than {LONGEST_NAME} characters")))
        }
        () if !is_label(name) => Some(invalid("metadata.name", name, DNS_LABEL)),
        () => None,
    }
}

/// All problems of a Cluster except that of its name.
pub(super) fn all(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    spec: &Spec,
) -> Vec<Problem> {
    let mut found = Vec::new();
    // Each takes a hundred bytes in memory, in every list.
    for (field, count) in [
        ("metadata.annotations", annotations.len()),
        ("spec.taints", spec.taints.len()),
        ("spec.zones", spec.zones.len()),
    ] {
        if count > MOST {
            let text = format!("Too many: {count}: must have at most {MOST} items");
            return vec![problem("FieldValueTooMany", field, text)];
        }
    }
    let bad = labels.iter().filter(|(key, value)| !is_key(key) || !is_value(value));
    found.extend(bad.map(|(key, value)| invalid("metadata.labels", &format!("{key}={value}"), LABEL)));
    mode(&mut found, &spec.sync_mode);
    endpoint(&mut found, &spec.api_endpoint);
    reference(&mut found, "spec.secretRef", spec.secret_ref.as_ref());
    reference(&mut found, "spec.impersonatorSecretRef", spec.impersonator_secret_ref.as_ref());
    proxy(&mut found, &spec.proxy_url);
    place(&mut found, spec);
    taints(&mut found, &spec.taints);
    found
}

fn mode(found: &mut Vec<Problem>, mode: &str) {
    if mode.is_empty() {
        found.push(required("spec.syncMode"));
    }
    if ![PULL, PUSH].contains(&mode) {
        found.push(unsupported("spec.syncMode", mode, "\"Pull\", \"Push\""));
    }
}

/// Splits the URL like Go's `url.Parse`. The registering program decides whether the gateway can
/// reach a member there.
fn endpoint(found: &mut Vec<Problem>, endpoint: &str) {
    const FIELD: &str = "spec.apiEndpoint";
    if endpoint.is_empty() {
        return;
    }
    let (before, fragment) = endpoint.split_once('#').unwrap_or((endpoint, ""));
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let rest = before.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        found.push(invalid(FIELD, host, &format!("host must be provided{FORM}")));
    }
    // Omits the values, which may be credentials.
    if user.is_some() {
        found.push(invalid(FIELD, "", "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        found.push(invalid(FIELD, "", "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        found.push(invalid(FIELD, "", "query parameters are not permitted in the URL"));
    }
}

fn reference(found: &mut Vec<Problem>, field: &str, reference: Option<&SecretRef>) {
    let Some(reference) = reference else { return };
    for (part, value) in [("namespace", &reference.namespace), ("name", &reference.name)] {
        if value.is_empty() {
            found.push(required(&format!("{field}.{part}")));
        }
    }
}

fn proxy(found: &mut Vec<Problem>, url: &str) {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    if !url.is_empty() && !matches!(scheme.as_str(), "http" | "https" | "socks5") {
        let detail = format!("unsupported scheme {}, must be http, https, or socks5", quoted(&scheme));
        // Omits the value, which may hold a password.
        found.push(invalid("spec.proxyURL", "", &detail));
    }
}

fn place(found: &mut Vec<Problem>, spec: &Spec) {
    for (field, value) in [("spec.provider", &spec.provider), ("spec.region", &spec.region)] {
        if !is_value(value) {
            found.push(invalid(field, value, LABEL));
        }
    }
    if !spec.zone.is_empty() && !spec.zones.is_empty() {
        found.push(invalid("spec.zone", &spec.zone, "Zone and Zones cannot co-exist"));
    }
    let zones = std::iter::once(&spec.zone).chain(&spec.zones);
    found.extend(zones.filter(|zone| !is_value(zone)).map(|zone| invalid("spec.zones", zone, LABEL)));
}

fn taints(found: &mut Vec<Problem>, taints: &[Taint]) {
    let mut known = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let field = format!("spec.taints[{index}]");
        if !is_key(&taint.key) {
            found.push(invalid(&format!("{field}.key"), &taint.key, KEY));
        }
        if !is_value(&taint.value) {
            found.push(invalid(&format!("{field}.value"), &taint.value, LABEL));
        }
        match taint.effect.as_str() {
            "" => found.push(required(&format!("{field}.effect"))),
            "NoSchedule" | "NoExecute" => {}
            other => found.push(unsupported(&format!("{field}.effect"), other, "\"NoExecute\", \"NoSchedule\"")),
        }
        if !known.insert((&taint.key, &taint.effect)) {
            let text = format!("Duplicate value: {}: taints must be unique by key and effect pair", quoted(&taint.key));
            found.push(problem("FieldValueDuplicate", &field, text));
        }
    }
}

fn required(field: &str) -> Problem {
    problem("FieldValueRequired", field, "Required value".to_owned())
}

fn invalid(field: &str, value: &str, detail: &str) -> Problem {
    problem("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", quoted(value)))
}

fn unsupported(field: &str, value: &str, supported: &str) -> Problem {
    problem(
        "FieldValueNotSupported",
        field,
        format!("Unsupported value: {}: supported values: {supported}", quoted(value)),
    )
}

/// A field of a Cluster's API that cannot be stored here.
pub(super) fn forbidden(field: &'static str, detail: &str) -> Problem {
    problem("FieldValueForbidden", field, format!("Forbidden: {detail}"))
}

fn problem(reason: &'static str, field: &str, message: String) -> Problem {
    Problem { reason: reason.into(), message: message.into(), field: field.to_owned().into() }
}
