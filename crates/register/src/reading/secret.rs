//! Secrets that source objects refer to, or that are source objects themselves.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretSlice};
use serde_json::Value;

use super::object::group_version;
use crate::Refused;
use crate::fields::{field, list, required, text, texts};

/// Type of the Secrets that hold a token of the hub itself.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
/// Limit of a key in characters (`validation.IsConfigMapKey`).
const LONGEST_KEY: usize = 253;

/// A `v1 Secret`. Its data cannot be printed.
#[derive(Debug, Clone)]
pub struct SecretObject {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Empty means `Opaque`.
    pub r#type: String,
    pub owners: Vec<Owner>,
    data: BTreeMap<String, SecretSlice<u8>>,
}

/// An owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Empty for the core group.
    pub group: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// The location of a Secret that an object refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretReference {
    pub namespace: String,
    pub name: String,
}

// === impl SecretObject ===

impl SecretObject {
    /// Reads the JSON of a `v1 Secret`, whose values are base64. A refusal names the key of the
    /// invalid value.
    pub fn read(secret: &Value) -> Result<Self, Refused> {
        Ok(Self {
            namespace: required(secret, "metadata.namespace")?.to_owned(),
            name: required(secret, "metadata.name")?.to_owned(),
            labels: texts(secret, "metadata.labels")?,
            r#type: text(secret, "type")?.to_owned(),
            owners: list(secret, "metadata.ownerReferences")?.iter().map(Owner::read).collect::<Result<_, _>>()?,
            data: data(secret)?,
        })
    }

    /// The value of a key. An empty value counts as none.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        self.data.get(key).map(ExposeSecret::expose_secret).filter(|value| !value.is_empty())
    }

    pub fn is_opaque(&self) -> bool {
        matches!(self.r#type.as_str(), "" | "Opaque")
    }

    /// Whether it is the token of a ServiceAccount of its own hub, which is no member's credential.
    /// Otherwise a user that may name a Secret, but not read it, could have it sent to an address
    /// of its own.
    pub fn is_of_hub(&self) -> bool {
        self.r#type == SERVICE_ACCOUNT_TOKEN
    }

    pub fn reference(&self) -> SecretReference {
        SecretReference { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

fn data(secret: &Value) -> Result<BTreeMap<String, SecretSlice<u8>>, Refused> {
    let Some(data) = field(secret, "data") else { return Ok(BTreeMap::new()) };
    let decoded = |(key, value): (&String, &Value)| {
        if key.len() > LONGEST_KEY || !key.bytes().all(is_in_key) {
            return Err(Refused::DataKey);
        }
        let base64 = if value.is_null() { Some("") } else { value.as_str() };
        let bytes = base64.and_then(|base64| STANDARD.decode(base64).ok());
        Ok((key.clone(), bytes.ok_or_else(|| Refused::Data(key.clone()))?.into()))
    };
    data.as_object().ok_or(Refused::Shape("data"))?.iter().map(decoded).collect()
}

fn is_in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

// === impl Owner ===

impl Owner {
    fn read(reference: &Value) -> Result<Self, Refused> {
        Ok(Self {
            group: group_version(text(reference, "apiVersion")?).0.to_owned(),
            kind: text(reference, "kind")?.to_owned(),
            name: text(reference, "name")?.to_owned(),
            uid: text(reference, "uid")?.to_owned(),
        })
    }
}

// === impl SecretReference ===

impl SecretReference {
    /// `None` if no Secret can exist there: names become segments of paths.
    pub(crate) fn new(namespace: &str, name: &str) -> Option<Self> {
        let valid = !namespace.contains('.') && [namespace, name].iter().all(|part| ClusterName::parse(part).is_ok());
        valid.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}
