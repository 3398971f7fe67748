//! The structure of the file. Every field may be null, as in Go's decoder.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Refused;

/// Levels of maps and lists. A kubeconfig with an `exec` has eight.
const MOST_DEPTH: usize = 32;
/// Maps, lists and scalars.
const MOST_NODES: usize = 1 << 16;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Document {
    pub(super) current_context: Option<String>,
    pub(super) contexts: Option<Vec<Named<Context>>>,
    pub(super) clusters: Option<Vec<Named<Cluster>>>,
    pub(super) users: Option<Vec<Named<User>>>,
}

/// An entry of a list. The name of its second key depends on the list.
#[derive(Deserialize)]
pub(super) struct Named<T> {
    pub(super) name: Option<String>,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    pub(super) value: Option<T>,
}

#[derive(Deserialize)]
pub(super) struct Context {
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: Option<String>,
    pub(super) tls_server_name: Option<String>,
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) proxy_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<String>,
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) r#as: Option<String>,
    pub(super) as_uid: Option<String>,
    pub(super) as_groups: Option<Vec<String>>,
    pub(super) as_user_extra: Option<BTreeMap<String, Vec<String>>>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) auth_provider: Option<Value>,
    pub(super) exec: Option<Value>,
}

// === impl Document ===

impl Document {
    /// Parses YAML of one document without anchors and without duplicate keys. JSON is YAML.
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        let options = serde_saphyr::options! {
            duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
            with_snippet: false,
            budget: serde_saphyr::budget! {
                max_anchors: 0,
                max_aliases: 0,
                max_depth: MOST_DEPTH,
                max_nodes: MOST_NODES,
            },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let place = error.location().map(|location| (location.line(), location.column()));
            let (line, column) = place.unwrap_or_default();
            Refused::Syntax { line, column }
        })
    }
}
