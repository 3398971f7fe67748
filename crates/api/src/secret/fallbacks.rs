//! Further addresses of a member (key [`FALLBACKS_KEY`]): a JSON list, each with a CA of its own.
//! An entry looks like one of a `ManagedCluster`'s `spec.managedClusterClientConfigs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{Data, Endpoint, FALLBACKS_KEY, SecretError, SecretRules, Trust, is_certificate_bundle};

/// Addresses of a cluster that are tried after the first.
pub const MOST_FALLBACKS: usize = 8;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    url: String,
    /// PEM in base64; the system's roots when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ca_bundle: String,
}

/// The addresses beside `first`.
pub(super) fn read(
    data: Data<'_>,
    first: &Endpoint,
    rules: SecretRules,
) -> Result<Vec<(Endpoint, Trust)>, SecretError> {
    let Some(text) = data.text(FALLBACKS_KEY)?.filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|_| {
        SecretError::Fallbacks("it is not a JSON list of objects with \"url\" and \"caBundle\": correct it")
    })?;
    if entries.len() > MOST_FALLBACKS {
        return Err(SecretError::Fallbacks("it lists more than eight addresses: remove some"));
    }
    entries.iter().map(|entry| entry.read(first, rules)).collect()
}

/// The text that [`read`] reads. An address that is not verified has none, and is left out.
pub(super) fn written(fallbacks: &[(Endpoint, Trust)]) -> Option<String> {
    let entries: Vec<Entry> = fallbacks.iter().filter_map(Entry::of).collect();
    // Texts alone: nothing of it can fail.
    (!entries.is_empty()).then(|| serde_json::to_string(&entries).unwrap_or_default())
}

// === impl Entry ===

impl Entry {
    fn of((url, trust): &(Endpoint, Trust)) -> Option<Self> {
        let ca_bundle = match trust {
            Trust::Bundle(bundle) => STANDARD.encode(bundle),
            Trust::SystemRoots => String::new(),
            Trust::Insecure => return None,
        };
        Some(Self { url: url.to_string(), ca_bundle })
    }

    fn read(&self, first: &Endpoint, rules: SecretRules) -> Result<(Endpoint, Trust), SecretError> {
        let url = Endpoint::parse(&self.url, rules.allow_http).map_err(SecretError::Fallback)?;
        // Requests have one base path, wherever they go.
        if url.base_path != first.base_path {
            return Err(SecretError::Fallbacks("an address has another path than the one in \"endpoint\": correct it"));
        }
        let not_pem = SecretError::Fallbacks("a caBundle holds no PEM certificate in base64: correct it");
        match STANDARD.decode(&self.ca_bundle) {
            Ok(bundle) if bundle.is_empty() => Ok((url, Trust::SystemRoots)),
            Ok(bundle) if is_certificate_bundle(&bundle) => Ok((url, Trust::Bundle(bundle))),
            _ => Err(not_pem),
        }
    }
}
