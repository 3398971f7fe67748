//! The Accept header: which representation of an answer a client wants.
//!
//! Clauses are tried in the order written, as kubectl relies on; a clause that cannot be served
//! falls through to the next. Quality values are ignored: no Kubernetes client sends them with
//! meaning.

use http::{HeaderMap, header::ACCEPT};

use super::refusal::Refusal;

/// Representation of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The object or list itself.
    Plain,
    /// `meta.k8s.io/v1` Table: columns and rows made by the server.
    Table,
    /// Aggregated discovery, v2.
    Discovery,
}

/// Picks the first clause that can be served; no Accept header means plain JSON.
pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Representation, Refusal> {
    let mut asked = false;
    for value in headers.get_all(ACCEPT) {
        for clause in value.to_str().unwrap_or_default().split(',') {
            asked = true;
            if let Some(representation) = representation(clause) {
                return Ok(representation);
            }
        }
    }
    if asked { Err(Refusal::not_acceptable()) } else { Ok(Representation::Plain) }
}

fn representation(clause: &str) -> Option<Representation> {
    let mut parts = clause.split(';').map(str::trim);
    if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
        return None;
    }
    let parameters: Vec<&str> = parts.collect();
    let has = |wanted: [&str; 3]| wanted.iter().all(|parameter| parameters.contains(parameter));
    if has(["as=Table", "g=meta.k8s.io", "v=v1"]) {
        return Some(Representation::Table);
    }
    if has(["as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"]) {
        return Some(Representation::Discovery);
    }
    let is_plain =
        !parameters.iter().any(|parameter| parameter.strip_prefix("as=").is_some_and(|kind| !kind.is_empty()));
    is_plain.then_some(Representation::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(accept: &str) -> Option<Representation> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        negotiate(&headers).map_err(|refusal| assert_eq!(refusal, Refusal::not_acceptable())).ok()
    }

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        use Representation::{Discovery, Plain, Table};
        assert_eq!(negotiate(&HeaderMap::new()), Ok(Plain));
        for (accept, expected) in [
            ("*/*", Some(Plain)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Table)),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json", Some(Plain)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Plain)),
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", Some(Discovery)),
            // A client of the beta gets plain discovery.
            ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", Some(Plain)),
            ("application/vnd.kubernetes.protobuf", None),
        ] {
            assert_eq!(negotiated(accept), expected, "{accept}");
        }
    }
}
