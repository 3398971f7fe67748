//! A Secret in a file.

use std::collections::BTreeMap;

use api::secret::SecretView;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// Largest manifest that is read: Kubernetes limits a Secret to 1 MiB.
pub(super) const LARGEST: u64 = 2 * 1024 * 1024;

/// A Secret as its manifest has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) kind: String,
    pub(super) metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(default)]
    string_data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

// === impl Manifest ===

impl Manifest {
    /// Decodes `data` and merges `stringData` over it, as the API server does on write. Fails with
    /// the key at fault.
    pub(super) fn bytes(&self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let mut bytes = BTreeMap::new();
        for (key, text) in &self.data {
            let compact: String = text.split_ascii_whitespace().collect();
            bytes.insert(key.clone(), STANDARD.decode(compact).map_err(|_| key.clone())?);
        }
        bytes.extend(self.string_data.iter().map(|(key, text)| (key.clone(), text.clone().into_bytes())));
        Ok(bytes)
    }

    pub(super) fn view<'a>(&'a self, data: &'a BTreeMap<String, Vec<u8>>, generation: &'a str) -> SecretView<'a> {
        SecretView {
            name: &self.metadata.name,
            uid: &self.metadata.name,
            resource_version: generation,
            creation_timestamp: None,
            labels: &self.metadata.labels,
            annotations: &self.metadata.annotations,
            data,
        }
    }
}

/// The position of the mistake without the text: parsers quote the lines around it, and these files
/// contain credentials.
pub(super) fn place(error: &serde_saphyr::Error) -> String {
    match error.location() {
        Some(location) => format!("not valid near line {}, column {}", location.line(), location.column()),
        None => "not valid".to_owned(),
    }
}
