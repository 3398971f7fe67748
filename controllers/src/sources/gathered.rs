//! What an object is read from: its own fields, and the Secrets that it refers to.
//!
//! Most events change nothing that is read. So the hub's answers stay text until it is known that a
//! cluster is to be derived from them.

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

/// Of an object's metadata, what changes with every write.
const VOLATILE: [&str; 2] = ["resourceVersion", "generation"];

pub struct Gathered {
    object: Value,
    /// In the order in which the object refers to them; `None`: there is none.
    secrets: Vec<Option<SecretText>>,
}

/// A Secret as the hub sends it, of which nobody but its readers sees the data.
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
    /// Asks for the Secrets. They are read anew each time: none is kept.
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

    /// Of all that is read, if there are sums.
    pub fn sum(&self, sums: &Sums) -> Option<Sum> {
        let mut sum = sums.begin()?;
        // A sum takes everything.
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
        // One that is too large to be read is refused as a field of another type.
        let value =
            |text: Option<&str>| text.map_or(Value::Null, |text| raw::parse(text).unwrap_or(Value::Bool(false)));
        let [namespace, name, labels, owners, r#type, data] = self.fields().map(value);
        let metadata = json!({"namespace": namespace, "name": name, "labels": labels, "ownerReferences": owners});
        SecretObject::read(&json!({"metadata": metadata, "type": r#type, "data": data}))
    }
}
