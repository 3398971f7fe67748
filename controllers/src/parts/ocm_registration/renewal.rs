//! What is read of the Lease of an agent. Six thousand agents renew theirs a hundred times a
//! second, so what is not needed is skipped in the text. To read all of it would take several times
//! as long, mostly for its managed fields.

use std::borrow::Cow;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::raw::meta;

/// Whose Lease it is, and when it was renewed.
#[derive(Debug, Clone)]
pub struct Renewal {
    /// Name, namespace and version.
    metadata: ObjectMeta,
    /// Milliseconds since 1970, as the holder wrote it; none if there is none that can be read.
    pub renewed: Option<i64>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    metadata: Named,
    spec: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Named {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    renew_time: Option<MicroTime>,
}

// === impl Renewal ===

impl Renewal {
    /// The cluster whose agent it is.
    pub fn cluster(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Renewal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text { metadata: Named { name, namespace, resource_version }, spec } = Text::deserialize(deserializer)?;
        let metadata = ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() };
        let spec = spec.and_then(|text| {
            let read = serde_json::from_str::<Spec>(text.get());
            read.inspect_err(|error| meta::tell_unread::<Lease>(None, &metadata, error)).ok()
        });
        let renewed = spec.and_then(|spec| spec.renew_time).map(|time| time.0.as_millisecond());
        Ok(Self { metadata, renewed })
    }
}

impl Resource for Renewal {
    type DynamicType = ();
    type Scope = <Lease as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Lease::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Lease::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Lease::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Lease::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;
    use kube::core::WatchEvent;
    use register::ocm::heartbeat::LEASE;

    use super::*;

    /// As a hub writes it: times that it takes and this program cannot read, and fields that are
    /// nested as deep as it likes.
    fn event(spec: &str) -> Renewal {
        let deep = format!("{}{}", "{\"f:a\":".repeat(300), "{}") + &"}".repeat(300);
        let text = format!(
            r#"{{"type": "MODIFIED", "object": {{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
            "metadata": {{"name": "{LEASE}", "namespace": "c1", "uid": "u", "resourceVersion": "7",
            "labels": {{"a": "b"}}, "managedFields": [{{"manager": "m", "fieldsV1": {deep}}}]}}, "spec": {spec}}}}}"#
        );
        match serde_json::from_str(&text).unwrap() {
            WatchEvent::Modified(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn of_a_lease_what_counts_is_read_whatever_else_is_in_it() {
        let lease = event(r#"{"renewTime": "2026-01-01T00:00:00.123456Z", "acquireTime": [{}], "holderIdentity": 7}"#);
        assert_eq!((lease.cluster(), lease.renewed), ("c1", Some(1_767_225_600_123)));
        assert_eq!((lease.name_any().as_str(), lease.resource_version().as_deref()), (LEASE, Some("7")));
        assert!(lease.labels().is_empty() && lease.managed_fields().is_empty());
        for none in
            [r#"{"renewTime": "9999-12-31T23:59:59.000000Z"}"#, r#"{"renewTime": null}"#, "{}", "null", "[]", "7"]
        {
            assert_eq!((event(none).cluster(), event(none).renewed), ("c1", None), "{none}");
        }
    }

    /// It has the path of Leases, and is asked for as a whole: their metadata say no time.
    #[test]
    fn it_is_asked_for_as_a_lease() {
        assert_eq!(Renewal::url_path(&(), Some("c1")), Lease::url_path(&(), Some("c1")));
        assert!(!Renewal::metadata_api());
    }
}
