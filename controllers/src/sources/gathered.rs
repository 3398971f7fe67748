//! The input that a cluster is derived from: an object's fields, and the Secrets that it refers to.
//!
//! Most events change none of it. So the hub's responses stay text until a cluster must be derived
//! from them.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, GetParams};
use kube::core::Request;
use kube::{Client, Resource as _};
use register::Refused;
use register::fingerprint::{Sum, Sums};
use register::reading::{Reading, SecretObject, SecretReference};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ReadError, Reader, WITHIN};
use crate::calls::{NOT_FOUND, is, value};
use crate::raw;

/// Metadata fields that change with every write of an object.
const VOLATILE: [&str; 2] = ["resourceVersion", "generation"];

pub struct Gathered {
    object: Value,
    /// In the order of the object's references; None: there is no such Secret.
    secrets: Vec<Option<SecretText>>,
}

/// A Secret as the hub sends it. Only readers parse its data.
#[derive(Deserialize)]
struct SecretText {
    metadata: Metadata,
    r#type: Text,
    data: Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: Text,
    name: Text,
    labels: Text,
    owner_references: Text,
}

/// A field that may be missing.
type Text = Option<Box<RawValue>>;

// === impl Gathered ===

impl Gathered {
    /// Reads the object's Secrets from the hub, each time anew: none is kept.
    pub async fn of(object: &DynamicObject, reader: &dyn Reader, client: &Client) -> Result<Self, ReadError> {
        let mut object = value(object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| !VOLATILE.contains(&field.as_str()));
        }
        let mut secrets = Vec::new();
        for reference in reader.refers_to(&object) {
            secrets.push(secret(client, &reference).await?);
        }
        Ok(Self { object, secrets })
    }

    /// Sum of the whole input, if `sums` is available.
    pub fn sum(&self, sums: &Sums) -> Option<Sum> {
        let mut sum = sums.begin()?;
        // Writing to a sum cannot fail.
        let _ = serde_json::to_writer(&mut sum, &self.object);
        for secret in &self.secrets {
            let Some(secret) = secret else {
                sum.add(b"none");
                continue;
            };
            for field in secret.fields() {
                sum.add(field.unwrap_or_default().as_bytes());
            }
        }
        Some(sum.end())
    }

    pub fn read(self, reader: &dyn Reader) -> Reading {
        let secrets = self.secrets.iter().map(|secret| secret.as_ref().map(SecretText::read).transpose());
        match secrets.collect::<Result<Vec<_>, _>>() {
            Ok(secrets) => reader.read(&self.object, &secrets),
            Err(refused) => Reading::Refused(refused),
        }
    }
}

async fn secret(client: &Client, reference: &SecretReference) -> Result<Option<SecretText>, ReadError> {
    let SecretReference { namespace, name } = reference;
    let place = || format!("{namespace}/{name}");
    let call = async {
        let request = Request::new(Secret::url_path(&(), Some(namespace))).get(name, &GetParams::default());
        client.request::<SecretText>(request.map_err(kube::Error::BuildRequest)?).await
    };
    match timeout(WITHIN, call).await.map_err(|_| ReadError::Timeout(place()))? {
        Ok(secret) => Ok(Some(secret)),
        Err(error) if is(&error, NOT_FOUND) => Ok(None),
        Err(source) => Err(ReadError::Hub { place: place(), source }),
    }
}

// === impl SecretText ===

impl SecretText {
    fn fields(&self) -> [Option<&str>; 6] {
        let Self { metadata: Metadata { namespace, name, labels, owner_references }, r#type, data } = self;
        [namespace, name, labels, owner_references, r#type, data].map(|field| field.as_deref().map(RawValue::get))
    }

    fn read(&self) -> Result<SecretObject, Refused> {
        // A field that is too large to parse is refused as a field of the wrong type.
        let value =
            |text: Option<&str>| text.map_or(Value::Null, |text| raw::parse(text).unwrap_or(Value::Bool(false)));
        let [namespace, name, labels, owners, r#type, data] = self.fields().map(value);
        let metadata = json!({"namespace": namespace, "name": name, "labels": labels, "ownerReferences": owners});
        SecretObject::read(&json!({"metadata": metadata, "type": r#type, "data": data}))
    }
}
