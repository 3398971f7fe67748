//! Objects of a hub whose contents are left as text until one is worked on. The writer of one
//! chooses how deep and how many its values are, and a list that is read as values fails, or takes
//! all memory, because of a single object in it.

pub mod large;
pub mod logged;
pub mod meta;
mod weight;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use futures_util::{Stream, StreamExt as _};
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::{DynamicResourceScope, ObjectMeta, TypeMeta};
use kube::runtime::watcher::{self, Event};
use register::ocm::delivery::DELIVERY_ANNOTATION;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::meta::{Bounded, Meta};
pub use self::weight::weight;

/// Bytes that the values of one object may take in memory. Those of the largest definitions take
/// half of it.
pub const HEAVIEST: usize = 24 << 20;

/// Fields that are read by themselves where all of them cannot be: those of an object, of its spec
/// and of its status; and how many of each.
const LEVELS: usize = 2;
const FIELDS: usize = 256;

const MANAGED_FIELDS: &str = "managedFields";
/// What of metadata its writer may make as large as an object may be: labels have no limit of their
/// own. Where several are left out, the last is reported: annotations have settings in them.
const UNBOUNDED: [&str; 4] = ["labels", "ownerReferences", "finalizers", ANNOTATIONS];
/// As what was left out.
pub const ANNOTATIONS: &str = "annotations";
/// The same: all but metadata, which could not be read.
pub const CONTENTS: &str = "contents";
/// Bytes that all metadata of an object, and each of these fields, may take in memory: a page of
/// objects is there at once.
pub const HEAVIEST_METADATA: usize = 4 * HEAVIEST_FIELD;
pub const HEAVIEST_FIELD: usize = 512 << 10;
/// Bytes of a setting, as JSON.
const SETTING: usize = 256;

/// An object as it came, its metadata aside. Without its managed fields, where those are too deep.
#[derive(Debug, Clone)]
pub struct RawObject {
    types: Option<TypeMeta>,
    metadata: ObjectMeta,
    /// A field of metadata that was left out, because it is too heavy.
    left_out: Option<&'static str>,
    /// A JSON object of the other fields.
    contents: String,
}

/// Why a text is not read as values.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("its values would take more than {} MiB of memory", HEAVIEST >> 20)]
    Heavy,
    /// Its values are nested too deep, mostly: the hub stores no other text.
    #[error("{0}")]
    Invalid(String),
}

/// As [`hub::watcher()`], of objects of which none holds the others up. A field that cannot be read
/// becomes a text that says why, so that it does not look absent, and the fields beside it are
/// read. It is logged.
pub fn watcher(
    api: Api<RawObject>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> {
    hub::watcher(api, config).map(|event| event.map(|event| mapped(event, RawObject::read)))
}

/// The same, whose contents stay text: `data` is a string.
pub fn packed(
    api: Api<RawObject>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> {
    hub::watcher(api, config).map(|event| event.map(|event| mapped(event, RawObject::pack)))
}

/// The values of a text.
///
/// # Errors
///
/// Too many, or nested deeper than 128 (`serde_json`), or not what is wanted.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Unreadable> {
    values(text, weight(text.as_bytes()) <= HEAVIEST)
}

/// The same, of one that `is_light` enough: no other is read.
fn values<T: DeserializeOwned>(text: &str, is_light: bool) -> Result<T, Unreadable> {
    if !is_light {
        return Err(Unreadable::Heavy);
    }
    serde_json::from_str(text).map_err(|error| Unreadable::Invalid(error.to_string()))
}

/// What of a text can be read: its fields, and theirs, each by itself, while their values take no
/// more than `room` together. Of another there is why it cannot be.
fn readable(text: &str, levels: usize, room: &mut usize) -> Value {
    let weighs = weight(text.as_bytes());
    let error = match values(text, weighs <= *room) {
        Ok(value) => {
            *room -= weighs;
            return value;
        }
        Err(error) => error,
    };
    let fields = || serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok();
    match fields().filter(|fields| levels > 0 && fields.len() <= FIELDS) {
        Some(fields) => {
            let each = fields.into_iter().map(|(name, text)| (name, readable(text.get(), levels - 1, room)));
            Value::Object(each.collect())
        }
        None => Value::String(format!("this cannot be read: {error}")),
    }
}

/// Makes text of the values of an object that is kept, which take several times as much memory.
/// Those that would be other values afterwards stay: numbers and depths have limits.
pub fn pack(object: &mut DynamicObject) {
    let mut text = object.data.to_string();
    if parse::<Value>(&text).is_ok_and(|again| again == object.data) {
        text.shrink_to_fit();
        object.data = Value::String(text);
    }
}

/// What was packed.
pub fn unpacked(object: &DynamicObject) -> DynamicObject {
    let DynamicObject { types, metadata, data } = object;
    let values = data.as_str().and_then(|text| parse(text).ok());
    let data = values.unwrap_or_else(|| data.clone());
    DynamicObject { types: types.clone(), metadata: metadata.clone(), data }
}

/// Why a field of metadata, or all contents, were left out.
pub fn missing(field: &'static str) -> String {
    if field == CONTENTS {
        return "its contents cannot be read".to_owned();
    }
    format!("its {field} would take more than {} KiB of memory", HEAVIEST_FIELD >> 10)
}

/// The same event, of what `read` makes of its object.
pub fn mapped<K>(event: Event<K>, read: impl FnOnce(K) -> DynamicObject) -> Event<DynamicObject> {
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(read(object)),
        Event::Apply(object) => Event::Apply(read(object)),
        Event::Delete(object) => Event::Delete(read(object)),
    }
}

// === impl RawObject ===

impl RawObject {
    pub fn read(self) -> DynamicObject {
        let Self { types, metadata, contents, left_out } = self;
        let mut data = parse(&contents).unwrap_or_else(|error| {
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            let kind = types.as_ref().map(|types| types.kind.as_str());
            if let Some(suppressed) = logged::due(kind.unwrap_or_default(), namespace, name) {
                tracing::warn!(kind, namespace, name, %error, suppressed, "an object cannot be read whole");
            }
            readable(&contents, LEVELS, &mut { HEAVIEST })
        });
        large::mark(&mut data, left_out.map(missing));
        DynamicObject { types, metadata, data }
    }

    /// Without its contents, where those have more than `most` bytes.
    pub fn read_within(self, most: usize) -> DynamicObject {
        let Self { types, metadata, contents, .. } = self;
        let data = if contents.len() > most { Value::Null } else { parse(&contents).unwrap_or_default() };
        DynamicObject { types, metadata, data }
    }

    /// Its contents stay text: `data` is a string.
    pub fn pack(self) -> DynamicObject {
        let Self { types, metadata, contents, .. } = self;
        DynamicObject { types, metadata, data: Value::String(contents) }
    }
}

impl Resource for RawObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

/// Reads an object field by field.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        let (mut api_version, mut kind, mut metadata) = (None, None, Metadata::default());
        let mut contents = String::from("{");
        while let Some(field) = map.next_key::<Cow<'_, str>>()? {
            match &*field {
                "apiVersion" => api_version = Some(map.next_value()?),
                "kind" => kind = Some(map.next_value()?),
                "metadata" => metadata = read_metadata(map.next_value::<Box<RawValue>>()?.get())?,
                _ => {
                    if contents.len() > 1 {
                        contents.push(',');
                    }
                    contents.push_str(&Value::from(&*field).to_string());
                    contents.push(':');
                    contents.push_str(map.next_value::<Box<RawValue>>()?.get());
                }
            }
        }
        contents.push('}');
        contents.shrink_to_fit();
        let types = api_version.zip(kind).map(|(api_version, kind)| TypeMeta { api_version, kind });
        let Metadata { known: metadata, left_out } = metadata;
        Ok(RawObject { types, metadata, left_out, contents })
    }
}

#[derive(Default)]
struct Metadata {
    known: ObjectMeta,
    left_out: Option<&'static str>,
}

/// What is read of annotations that are too heavy. The others are skipped in the text.
#[derive(Deserialize)]
struct Settings<'t> {
    /// Works stop where it is missing, so it must not depend on the annotations beside it.
    #[serde(borrow, rename = "cluster.core.oam.dev/delivery")]
    delivery: Option<&'t RawValue>,
}

/// Managed fields are as deep as what they are of, and nothing else of metadata is.
fn read_metadata<E: Error>(text: &str) -> Result<Metadata, E> {
    if weight(text.as_bytes()) <= HEAVIEST_METADATA
        && let Ok(known) = serde_json::from_str(text)
    {
        return Ok(Metadata { known, left_out: None });
    }
    let mut fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).map_err(E::custom)?;
    fields.remove(MANAGED_FIELDS);
    let annotations = fields.get(ANNOTATIONS).copied();
    let is_heavy = |field: &RawValue| weight(field.get().as_bytes()) > HEAVIEST_FIELD;
    let mut left_out = None;
    for name in UNBOUNDED {
        if fields.get(name).is_some_and(|field| is_heavy(field)) {
            fields.remove(name);
            left_out = Some(name);
        }
    }
    let rest = serde_json::to_string(&fields).map_err(E::custom)?;
    let mut known: ObjectMeta = serde_json::from_str(&rest).map_err(E::custom)?;
    if left_out == Some(ANNOTATIONS) {
        known.annotations = annotations.and_then(|text| settings(text.get()));
    }
    Ok(Metadata { known, left_out })
}

fn settings(annotations: &str) -> Option<BTreeMap<String, String>> {
    let Settings { delivery } = serde_json::from_str(annotations).ok()?;
    let value = delivery.filter(|value| value.get().len() <= SETTING)?;
    Some(BTreeMap::from([(DELIVERY_ANNOTATION.to_owned(), serde_json::from_str(value.get()).ok()?)]))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use serde_json::json;

    use super::*;
    use crate::scripted;

    fn nested(deep: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(deep), "}".repeat(deep))
    }

    fn object(name: &str, spec: &str, managed: &str) -> String {
        let metadata = format!(
            r#"{{"name": "{name}", "resourceVersion": "7", "labels": {{"a": "b"}},
            "managedFields": [{{"manager": "m", "fieldsV1": {managed}}}]}}"#
        );
        format!(
            r#"{{"apiVersion": "x/v1", "kind": "Thing", "metadata": {metadata}, "spec": {spec}, "status": {{"b": [2]}}}}"#
        )
    }

    /// What a reader gets of a hub's list and of the events after it.
    async fn listed(items: &[String], read: impl Fn(RawObject) -> DynamicObject) -> Vec<DynamicObject> {
        let list =
            format!(r#"{{"kind": "List", "metadata": {{"resourceVersion": "9"}}, "items": [{}]}}"#, items.join(","));
        let hub = scripted::answering(move |_| std::future::ready(scripted::text(200, list.clone())));
        let resource = ApiResource {
            group: "x".into(),
            version: "v1".into(),
            api_version: "x/v1".into(),
            kind: "Thing".into(),
            plural: "things".into(),
        };
        let api: Api<RawObject> = Api::all_with(hub, &resource);
        let mut events = pin!(watcher::watcher(api, watcher::Config::default()));
        let mut found = Vec::new();
        loop {
            match mapped(events.next().await.unwrap().unwrap(), &read) {
                Event::InitApply(object) => found.push(object),
                Event::InitDone => return found,
                _ => {}
            }
        }
    }

    #[tokio::test]
    async fn one_object_that_cannot_be_read_hides_no_other() {
        let heavy = format!("[{}]", vec![r#"{"a":0}"#; 60_000].join(","));
        let items = [("deep", nested(200)), ("heavy", heavy), ("good", nested(3))];
        let items = items.map(|(name, spec)| object(name, &spec, "{}"));
        let found = listed(&items, RawObject::read).await;
        let named = found.iter().map(|object| object.metadata.name.as_deref().unwrap());
        assert_eq!(named.collect::<Vec<_>>(), ["deep", "heavy", "good"]);
        for (object, why) in [(&found[0], "recursion limit"), (&found[1], "more than 24 MiB")] {
            let spec = object.data.pointer("/spec/a").unwrap_or(&object.data["spec"]).as_str().unwrap();
            assert!(spec.contains("cannot be read") && spec.contains(why), "{spec}");
            assert_eq!(object.data["status"], json!({"b": [2]}), "what is beside it is there");
        }
        assert_eq!(found[2].data, json!({"spec": {"a": {"a": {"a": 1}}}, "status": {"b": [2]}}));
        assert_eq!(found[2].types.as_ref().unwrap().kind, "Thing");
    }

    /// A user that may write one field of an object can hide no other field with it.
    #[tokio::test]
    async fn a_field_that_cannot_be_read_hides_none_beside_it() {
        let heavy = format!("[{}]", vec![r#"{"url":""}"#; 60_000].join(","));
        let spec = format!(r#"{{"clientConfigs": {heavy}, "taints": [{{"key": "k"}}], "accepts": true}}"#);
        let found = listed(&[object("c", &spec, "{}")], RawObject::read).await;
        assert_eq!(found[0].data["spec"]["taints"], json!([{"key": "k"}]));
        assert_eq!(found[0].data["spec"]["accepts"], true);
        assert!(found[0].data["spec"]["clientConfigs"].is_string());
        // Each fits, and all of them do not.
        let half = format!("[{}]", vec![r#"{"a":0}"#; 20_000].join(","));
        let spec = format!(r#"{{"a": {half}, "b": {half}, "c": 1}}"#);
        let found = listed(&[object("c", &spec, "{}")], RawObject::read).await;
        let spec = &found[0].data["spec"];
        assert!(spec["a"].is_array() && spec["b"].is_string() && spec["c"] == 1);
    }

    #[tokio::test]
    async fn managed_fields_that_are_too_deep_take_nothing_else_along() {
        let found =
            listed(&[object("deep", "{}", &nested(200)), object("good", "{}", &nested(3))], RawObject::read).await;
        let of = |place: usize| &found[place].metadata;
        assert_eq!((of(0).name.as_deref(), of(0).managed_fields.is_some()), (Some("deep"), false));
        assert_eq!(of(0).labels, of(1).labels);
        assert!(of(1).managed_fields.is_some());
    }

    /// Labels have no limit of their own, and an object of a mebibyte and a half may be nothing
    /// else: 22 MiB in memory, of each object of a page.
    #[tokio::test]
    async fn metadata_that_is_too_heavy_is_left_out_and_hides_no_other_object() {
        let heavy = |field: &str| {
            let items = (0..30_000).map(|number| format!(r#""{number}":"""#)).collect::<Vec<_>>().join(",");
            object("heavy", r#"{"accepts": true}"#, "{}")
                .replace(r#""labels": {"a": "b"}"#, &format!(r#""{field}": {{{items}}}"#))
        };
        let found = listed(&[heavy("labels"), heavy("annotations"), object("good", "{}", "{}")], RawObject::read).await;
        for (object, field) in found.iter().zip(["labels", "annotations"]) {
            let why = large::excess(object).unwrap();
            assert!(why.contains(field) && why.contains("512 KiB"), "{why}");
            assert_eq!(object.data["spec"], json!({"accepts": true}));
            assert_eq!(object.metadata.name.as_deref(), Some("heavy"));
            assert!(object.metadata.labels.as_ref().is_none_or(|labels| labels.len() < 2));
        }
        let good = &found[2];
        assert_eq!((large::excess(good), good.metadata.labels.as_ref().unwrap()["a"].as_str()), (None, "b"));
    }

    /// How a cluster is delivered to is read, wherever it stands among the others, and no other is.
    #[test]
    fn of_annotations_that_are_too_heavy_the_setting_is_read() {
        let others = (0..30_000).map(|number| format!(r#""{number}":"""#)).collect::<Vec<_>>().join(",");
        let read = |setting: &str| {
            let text = format!(r#"{{"annotations": {{{others}, {setting} "z": ""}}}}"#);
            let Metadata { known, left_out } = read_metadata::<serde_json::Error>(&text).unwrap();
            assert_eq!(left_out, Some(ANNOTATIONS));
            known.annotations
        };
        let setting = |value: &str| format!(r#""{DELIVERY_ANNOTATION}": {value},"#);
        let known = BTreeMap::from([(DELIVERY_ANNOTATION.to_owned(), "push".to_owned())]);
        assert_eq!(read(&setting(r#""push""#)), Some(known));
        for absent in [String::new(), setting(&format!(r#""{}""#, "p".repeat(SETTING))), setting("null"), setting("[]")]
        {
            assert_eq!(read(&absent), None, "{absent}");
        }
    }

    #[tokio::test]
    async fn what_is_packed_is_the_text() {
        let found = listed(&[object("deep", &nested(200), "{}")], RawObject::pack).await;
        let text = found[0].data.as_str().unwrap();
        assert!(text.starts_with(r#"{"spec":{"a":{"a""#) && text.ends_with(r#","status":{"b": [2]}}"#), "{text}");
    }

    #[test]
    fn what_was_packed_is_the_same_again() {
        let deep: Value = serde_json::from_str(&nested(100)).unwrap();
        let deeper = (0..50).fold(deep, |inner, _| Value::Array(vec![inner]));
        let text = json!("this cannot be read: it is too heavy");
        for (data, is_packed) in [(json!({"spec": {"a": [1, "b", null]}}), true), (text, true), (deeper, false)] {
            let types = TypeMeta { api_version: "v1".to_owned(), kind: "K".to_owned() };
            let metadata = ObjectMeta { name: Some("n".to_owned()), ..ObjectMeta::default() };
            let before = DynamicObject { types: Some(types), metadata, data };
            let mut object = before.clone();
            pack(&mut object);
            assert_eq!(object != before, is_packed);
            assert_eq!(unpacked(&object), before);
        }
    }

    #[test]
    fn a_field_whose_name_is_escaped_is_kept() {
        let read: RawObject = serde_json::from_str(r#"{"metadata": {"name": "n"}, "a\"\u0062": 1}"#).unwrap();
        assert_eq!(read.read().data, json!({"a\"b": 1}));
        assert!(serde_json::from_str::<RawObject>(r#"{"metadata": 3}"#).is_err());
    }
}
