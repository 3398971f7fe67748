//! The Accept header: which representation of an answer a client wants.
//!
//! Clauses are tried in the order written, as kubectl relies on; a clause that cannot be served
//! falls through to the next. Quality values are ignored: no Kubernetes client sends them with
//! meaning.

use http::{HeaderMap, header::ACCEPT};

use super::refusal::Refusal;

/// How an answer is represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The object or list itself.
    Plain,
    /// `meta.k8s.io/v1` Table: columns and rows made by the server.
    Table,
    /// Aggregated discovery, v2.
    Discovery,
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Picks the first clause that can be served; no Accept header means plain JSON.
pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Representation, Refusal> {
    let mut asked = false;
    for value in headers.get_all(ACCEPT) {
        for clause in value.to_str().unwrap_or_default().split(',') {
            asked = true;
            if let Some(representation) = Clause::parse(clause).representation() {
                return Ok(representation);
            }
        }
    }
    if asked { Err(Refusal::not_acceptable()) } else { Ok(Representation::Plain) }
}

// === impl Clause ===

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters = parts.filter_map(|part| part.split_once('=')).collect();
        Self { media, parameters }
    }

    fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    fn representation(&self) -> Option<Representation> {
        if !matches!(self.media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        match (self.parameter("as"), self.parameter("g"), self.parameter("v")) {
            ("", _, _) => Some(Representation::Plain),
            ("Table", "meta.k8s.io", "v1") => Some(Representation::Table),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Representation::Discovery),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(accept: &str) -> Result<Representation, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        negotiate(&headers)
    }

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        assert_eq!(negotiate(&HeaderMap::new()), Ok(Representation::Plain));
        assert_eq!(negotiated("*/*"), Ok(Representation::Plain));
        assert_eq!(
            negotiated("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Ok(Representation::Table)
        );
        assert_eq!(
            negotiated("application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json"),
            Ok(Representation::Plain)
        );
        assert_eq!(negotiated("application/vnd.kubernetes.protobuf,application/json"), Ok(Representation::Plain));
        assert_eq!(
            negotiated("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
            Ok(Representation::Discovery)
        );
    }

    #[test]
    fn a_client_of_the_beta_gets_plain_discovery() {
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(negotiated(beta), Ok(Representation::Plain));
    }

    #[test]
    fn nothing_servable_is_not_acceptable() {
        assert_eq!(negotiated("application/vnd.kubernetes.protobuf"), Err(Refusal::not_acceptable()));
    }
}
