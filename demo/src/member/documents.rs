//! The recorded documents of the sample clusters: discovery, columns of tables, and the content of
//! each cluster.
//!
//! A recording is moved to today when it is read: every time in it keeps its distance from the
//! moment of recording, so that ages stay what they were.

use std::sync::LazyLock;

use serde_json::Value;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

static DISCOVERY: LazyLock<Value> = LazyLock::new(|| parsed(include_str!("documents/discovery.json")));
static RESOURCES: LazyLock<Value> = LazyLock::new(|| parsed(include_str!("documents/resources.json")));

/// The fraction of a `metav1.MicroTime`: clients refuse one without six digits of it.
const MICROSECONDS: &str = ".000000Z";

/// One of the resources that every sample cluster serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    /// Name in paths.
    pub(super) plural: &'static str,
    description: &'static Value,
}

/// The discovery document of a path, aggregated if that is asked for and there is one.
pub(super) fn discovery(path: &str, aggregated: bool) -> Option<&'static Value> {
    let plain = DISCOVERY["plain"].get(path)?;
    DISCOVERY["aggregated"].get(path).filter(|_| aggregated).or(Some(plain))
}

/// A document of this program.
pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("recorded documents are JSON")
}

/// When a recording was made, or something in it.
pub(super) fn moment(value: &Value) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok()
}

/// Moves every time in a recording.
pub(super) fn shift(value: &mut Value, by: Duration) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| shift(element, by)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shift(field, by)),
        Value::String(text) => {
            let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) else { return };
            let moved = (moment + by).format(&Rfc3339).unwrap_or_default();
            *text = if text.ends_with(MICROSECONDS) { moved.replace('Z', MICROSECONDS) } else { moved };
        }
        _ => {}
    }
}

// === impl Resource ===

impl Resource {
    /// Every resource.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let known = RESOURCES.as_object().into_iter().flatten();
        known.map(|(plural, description)| Self { plural, description })
    }

    /// The kind of its objects.
    pub(super) fn kind(self) -> &'static str {
        self.description["kind"].as_str().unwrap_or_default()
    }

    /// `v1`, or group and version.
    pub(super) fn api_version(self) -> &'static str {
        self.description["apiVersion"].as_str().unwrap_or_default()
    }

    /// The resource with its group, as `schema.GroupResource` prints it.
    pub(super) fn qualified(self) -> String {
        let group = self.api_version().split_once('/').map(|(group, _)| group);
        group.map_or_else(|| self.plural.to_owned(), |group| format!("{}.{group}", self.plural))
    }

    /// `columnDefinitions` of its tables. Columns of priority 1 are those that
    /// `kubectl get -o wide` adds.
    pub(super) fn columns(self) -> &'static Value {
        &self.description["columns"]
    }

    /// Fields by which its objects can be selected, besides name and namespace.
    pub(super) fn fields(self) -> Vec<&'static str> {
        self.description["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_move_and_nothing_else_does() {
        let mut value = json!({"a": ["2026-01-31T23:59:59Z", "report-0001", 7], "b": "2026-01-01T00:00:00.000000Z"});
        shift(&mut value, Duration::SECOND);
        assert_eq!(value, json!({"a": ["2026-02-01T00:00:00Z", "report-0001", 7], "b": "2026-01-01T00:00:01.000000Z"}));
    }

    #[test]
    fn discovery_names_what_is_served() {
        let mut named = Vec::new();
        for path in ["/api/v1", "/apis/coordination.k8s.io/v1"] {
            let document = discovery(path, false).unwrap();
            let resources = document["resources"].as_array().unwrap().iter();
            let plain = resources.filter(|resource| !resource["name"].as_str().unwrap().contains('/'));
            named.extend(plain.map(|resource| (document["groupVersion"].clone(), resource["name"].clone())));
        }
        let mut aggregated = Vec::new();
        for path in ["/api", "/apis"] {
            let group = &discovery(path, true).unwrap()["items"][0];
            let name = group["metadata"]["name"].as_str().unwrap();
            let version = if name.is_empty() { json!("v1") } else { json!(format!("{name}/v1")) };
            let resources = group["versions"][0]["resources"].as_array().unwrap().iter();
            aggregated.extend(resources.map(|resource| (version.clone(), resource["resource"].clone())));
        }
        let mut served: Vec<_> = Resource::all().map(|one| (json!(one.api_version()), json!(one.plural))).collect();
        for list in [&mut named, &mut aggregated, &mut served] {
            list.sort_by_key(|(version, name)| format!("{version} {name}"));
        }
        assert_eq!((&named, &aggregated), (&served, &served));
        assert_ne!(discovery("/api", false), discovery("/api", true), "older clients get the plain one (KEP-3352)");
    }
}
