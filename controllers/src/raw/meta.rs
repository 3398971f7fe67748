//! Reads objects, or their metadata alone, and leaves out fields of the metadata that are too
//! heavy: an object's writer may fill a mebibyte and a half with labels, and anybody may write
//! objects of some kinds.

use std::any::type_name;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use kube::api::{DynamicObject, GetParams, ListParams, Patch, PatchParams};
use kube::core::{ObjectList, ObjectMeta, Request};
use kube::{Api, Error, Resource};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{CONTENTS, Metadata, RawObject, logged, parse, read_metadata};

/// The metadata of an object of a kind: all that is asked of the hub.
pub struct Meta<K> {
    pub metadata: ObjectMeta,
    /// A field of it that was left out, because it is too heavy.
    pub left_out: Option<&'static str>,
    kind: PhantomData<fn() -> K>,
}

/// An object of a kind.
#[derive(Debug, Clone)]
pub struct Bounded<K> {
    pub object: K,
    /// A field of metadata that was left out, because it is too heavy; or [`CONTENTS`].
    pub left_out: Option<&'static str>,
}

/// Reads an object of a kind that has no type here.
pub async fn get_object(api: &Api<DynamicObject>, name: &str) -> kube::Result<DynamicObject> {
    let request = Request::new(api.resource_url()).get(name, &GetParams::default());
    send(api, request.map_err(Error::BuildRequest)?).await.map(RawObject::read)
}

/// Reads an object.
pub async fn get<K: Resource + Clone + Default + DeserializeOwned>(
    api: &Api<K>,
    name: &str,
) -> kube::Result<Bounded<K>> {
    let request = Request::new(api.resource_url()).get(name, &GetParams::default());
    send(api, request.map_err(Error::BuildRequest)?).await
}

/// Reads the metadata of a page of objects.
pub async fn list<K: Resource + Clone>(api: &Api<K>, page: &ListParams) -> kube::Result<ObjectList<Meta<K>>> {
    let request = Request::new(api.resource_url()).list_metadata(page);
    send(api, request.map_err(Error::BuildRequest)?).await
}

/// Patches an object. Returns its metadata.
pub async fn patch<K: Resource + Clone, P: Serialize + fmt::Debug>(
    api: &Api<K>,
    name: &str,
    parameters: &PatchParams,
    patch: &Patch<P>,
) -> kube::Result<Meta<K>> {
    let request = Request::new(api.resource_url()).patch_metadata(name, parameters, patch);
    send(api, request.map_err(Error::BuildRequest)?).await
}

/// Says that an object of a type is read without its contents, unless that was said of it lately.
pub fn tell_unread<K>(kind: Option<&str>, metadata: &ObjectMeta, error: &dyn fmt::Display) {
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
    if let Some(suppressed) = logged::due(type_name::<K>(), namespace, name) {
        tracing::warn!(kind, namespace, name, %error, suppressed, "an object is read without its contents");
    }
}

async fn send<K: Resource + Clone, T: DeserializeOwned>(
    api: &Api<K>,
    request: http::Request<Vec<u8>>,
) -> kube::Result<T> {
    api.clone().into_client().request(request).await
}

// === impl Meta ===

impl<K> Clone for Meta<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), left_out: self.left_out, kind: PhantomData }
    }
}

impl<K> Default for Meta<K> {
    fn default() -> Self {
        Self { metadata: ObjectMeta::default(), left_out: None, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Meta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.fmt(f)
    }
}

impl<K: Resource> Resource for Meta<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn api_version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de, K> Deserialize<'de> for Meta<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Metadata { known: metadata, left_out } = deserializer.deserialize_map(OnlyMetadata)?;
        Ok(Self { metadata, left_out, kind: PhantomData })
    }
}

struct OnlyMetadata;

impl<'de> Visitor<'de> for OnlyMetadata {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        let mut metadata = Metadata::default();
        while let Some(field) = map.next_key::<Cow<'_, str>>()? {
            if field == "metadata" {
                metadata = read_metadata(map.next_value::<Box<RawValue>>()?.get())?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(metadata)
    }
}

// === impl Bounded ===

impl<K: Resource> Resource for Bounded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn api_version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

/// An object whose contents cannot be read is one without any: it hides no other of a list.
impl<'de, K: Resource + Default + DeserializeOwned> Deserialize<'de> for Bounded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawObject { types, metadata, mut left_out, contents } = RawObject::deserialize(deserializer)?;
        let mut object: K = parse(&contents).unwrap_or_else(|error| {
            // Items of a list do not say their kind.
            tell_unread::<K>(types.as_ref().map(|types| types.kind.as_str()), &metadata, &error);
            left_out = Some(CONTENTS);
            K::default()
        });
        *object.meta_mut() = metadata;
        Ok(Self { object, left_out })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::Secret;
    use kube::ResourceExt as _;

    use super::*;

    /// An object of nothing but labels, and of one more field.
    fn heavy(field: &str) -> String {
        let labels = (0..30_000).map(|number| format!(r#""{number}":"""#)).collect::<Vec<_>>().join(",");
        format!(r#"{{"kind": "K", "metadata": {{"name": "n", "uid": "u", "labels": {{{labels}}}}}, {field}}}"#)
    }

    #[test]
    fn metadata_alone_is_as_bounded_as_that_of_whole_objects() {
        let meta: Meta<Lease> = serde_json::from_str(&heavy(r#""spec": {"a": 1}"#)).unwrap();
        assert_eq!((meta.name_any().as_str(), meta.uid().as_deref(), meta.labels().len()), ("n", Some("u"), 0));
        assert_eq!(meta.left_out, Some("labels"));
        assert!(Meta::<Lease>::metadata_api() && !Bounded::<Lease>::metadata_api());
        let list = format!(
            r#"{{"kind": "List", "apiVersion": "v1", "metadata": {{}}, "items": [{}]}}"#,
            heavy(r#""spec": null"#)
        );
        let list: ObjectList<Meta<Lease>> = serde_json::from_str(&list).unwrap();
        assert!(list.items[0].labels().is_empty());
    }

    #[test]
    fn an_object_says_what_of_its_metadata_is_missing() {
        let text = heavy(r#""spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}"#).replace(r#""kind": "K", "#, "");
        let lease: Bounded<Lease> = serde_json::from_str(&text).unwrap();
        assert_eq!((lease.name_any().as_str(), lease.left_out), ("n", Some("labels")));
        assert!(lease.object.spec.unwrap().renew_time.is_some());
        let request: Bounded<CertificateSigningRequest> = serde_json::from_str(
            r#"{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": "r", "labels": {"a": "b"}},
            "spec": {"request": "YQ==", "signerName": "s", "usages": ["client auth"]}}"#,
        )
        .unwrap();
        assert_eq!((request.object.labels()["a"].as_str(), request.left_out), ("b", None));
        assert_eq!(request.object.spec.signer_name, "s");
    }

    /// A time that a hub takes and this program cannot read, and values that take too much memory.
    #[test]
    fn one_object_whose_contents_cannot_be_read_hides_no_other_of_a_list() {
        let list = r#"{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [
            {"metadata": {"name": "bad"}, "spec": {"renewTime": "9999-12-31T23:59:59.000000Z"}},
            {"metadata": {"name": "good"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}]}"#;
        let list: ObjectList<Bounded<Lease>> = serde_json::from_str(list).unwrap();
        let read = list.items.iter().map(|lease| (lease.name_any(), lease.left_out, lease.object.spec.is_some()));
        let expected = [("bad".to_owned(), Some(CONTENTS), false), ("good".to_owned(), None, true)];
        assert_eq!(read.collect::<Vec<_>>(), expected);
        let data = (0..150_000).map(|number| format!(r#""{number}":"""#)).collect::<Vec<_>>().join(",");
        let text = format!(r#"{{"metadata": {{"name": "s", "labels": {{"a": "b"}}}}, "data": {{{data}}}}}"#);
        let secret: Bounded<Secret> = serde_json::from_str(&text).unwrap();
        assert_eq!((secret.object.labels()["a"].as_str(), secret.left_out), ("b", Some(CONTENTS)));
        assert!(secret.object.data.is_none());
    }

    #[test]
    fn annotations_that_were_left_out_are_told_before_anything_else() {
        let many = |one: &str| vec![one; 30_000].join(",");
        let annotations = (0..30_000).map(|number| format!(r#""{number}":"""#)).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"metadata": {{"name": "n", "annotations": {{{annotations}}}, "finalizers": [{}]}}}}"#,
            many(r#""""#)
        );
        let meta: Meta<Lease> = serde_json::from_str(&text).unwrap();
        assert_eq!((meta.left_out, meta.finalizers().len()), (Some("annotations"), 0));
    }
}
