//! The server of contexts: the hub, or the gateway itself.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use api::secret::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub::client::{self, Address};
use serde_json::{Map, Value};

use super::Spelling;

/// Must not be in the server's URL before a member's path: kcp's plugins take the first occurrence
/// for the workspace's.
const CLUSTERS: &str = "/clusters/";

/// A server, and how to verify its certificate.
#[derive(Debug, Clone)]
pub struct Server {
    pub url: String,
    /// The other fields of a kubeconfig's cluster.
    pub fields: Map<String, Value>,
}

// === impl Server ===

impl Server {
    /// The server of `spelling`'s paths.
    pub async fn find(
        spelling: Spelling,
        url: Option<&str>,
        ca_file: Option<&Path>,
        kubeconfig: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let Some(url) = url else {
            ensure!(
                spelling.goes_through_hub(),
                "--dialect={} requires --gateway-url: the hub does not pass its paths on to the gateway",
                spelling.as_str()
            );
            return Ok(Self::of_hub(client::address(kubeconfig).await.context("the hub")?));
        };
        let url = url.trim_end_matches('/');
        if let Err(why) = Endpoint::parse(url, false) {
            bail!("--gateway-url: {why}");
        }
        let is_ambiguous = spelling == Spelling::Kcp && format!("{url}/").contains(CLUSTERS);
        ensure!(
            !is_ambiguous,
            "--gateway-url must not contain {CLUSTERS} for --dialect=kcp: kcp's plugins would read it"
        );
        let ca = match ca_file {
            Some(path) => Some(client::ca_file(path)?),
            None => client::address(kubeconfig).await.context("the hub, whose CA --gateway-url needs")?.ca,
        };
        Ok(Self { url: url.to_owned(), fields: authority(ca) })
    }

    fn of_hub(hub: Address) -> Self {
        let mut fields = authority(hub.ca);
        for (field, value) in [("tls-server-name", hub.tls_server_name), ("proxy-url", hub.proxy_url)] {
            if let Some(value) = value {
                fields.insert(field.to_owned(), value.into());
            }
        }
        if hub.is_insecure {
            // kubectl does not accept a CA next to it.
            fields.remove("certificate-authority-data");
            fields.insert("insecure-skip-tls-verify".to_owned(), true.into());
        }
        Self { url: hub.url, fields }
    }
}

fn authority(pem: Option<Vec<u8>>) -> Map<String, Value> {
    let field = pem.map(|pem| ("certificate-authority-data".to_owned(), Value::from(STANDARD.encode(pem))));
    field.into_iter().collect()
}
