//! Any object of a hub whose contents stay text: it is read if its metadata can be, no more than
//! the limits of it is kept, and what is within them is read as if there were none.
//!
//! Input: its JSON ([`repeated()`]).

use std::collections::BTreeMap;

use controllers::edges::{Bounded, CONTENTS, HEAVIEST, HEAVIEST_FIELD, HEAVIEST_METADATA, Meta, RawObject, weight};
use k8s_openapi::api::core::v1::Secret;
use kube::Resource as _;
use kube::core::ObjectMeta;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use super::weight::taken;
use crate::repeated::repeated;

pub const WORDS: &[&str] = &[
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",",
    "\"metadata\":{\"name\":\"n\",\"namespace\":\"s\",\"uid\":\"u\",",
    "\"labels\":{<4\"\":\"\",>\"a\":\"b\"}",
    "\"annotations\":{<4\"\":\"\",>\"a\":\"b\"}",
    "\"cluster.core.oam.dev/delivery\":\"push\",",
    "\"finalizers\":[<4\"\",>\"f\"]",
    "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\"}]",
    "\"managedFields\":[{\"manager\":\"m\",\"fieldsV1\":{}}]",
    "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"",
    "9999-12-31T23:59:59Z",
    "\"data\":{\"token\":\"YQ==\"}",
    "\"spec\":{\"a\":1}",
    "\"type\":\"Opaque\"",
    "<3{\"a\":>",
    "<3}>",
    "<4{\"\":0},>",
    "<2\"\\u0061\":1,>",
    "\\ud800",
    "1e999",
    "null",
    "[]",
    "{}",
    "\"\"",
    ",",
    "}",
];

/// What of metadata has a limit of its own, the last first that is told.
const LIMITED: [&str; 4] = ["annotations", "finalizers", "ownerReferences", "labels"];
/// Fields of an object, and of one of them, that are read by themselves.
const FIELDS: usize = 256;
/// Bytes of memory for the reasons that are there in place of values.
const REASONS: usize = 16 << 20;
/// Bytes of a setting.
const SETTING: usize = 256;
/// A field of this name is text to be read for `serde_json`, which no hub stores.
const OF_THE_LIBRARY: &str = "$serde_json";

type Fields<'t> = BTreeMap<String, &'t RawValue>;

pub fn check(input: &[u8]) {
    let Ok(text) = String::from_utf8(repeated(input)) else { return };
    if serde_json::from_str::<RawObject>(&text).is_ok() {
        assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok(), "it is no JSON");
    }
    let Some(fields) = read::<Fields<'_>>(&text).filter(|_| !text.contains(OF_THE_LIBRARY)) else { return };
    // Each field once: of two, one is read.
    let text = serde_json::to_string(&fields).expect("texts as keys");
    let is_text = |name: &str| fields.get(name).is_none_or(|field| read::<String>(field.get()).is_some());
    let are_types = is_text("apiVersion") && is_text("kind");
    let metadata = fields.get("metadata").map_or("{}", |field| field.get());
    let Ok(object) = serde_json::from_str::<RawObject>(&text) else {
        return assert!(!are_types || read::<ObjectMeta>(metadata).is_none(), "it is not read");
    };
    assert!(are_types);
    let meta: Meta<Secret> = serde_json::from_str(&text).expect("the object is read, so its metadata is");
    assert_eq!(&meta.metadata, object.meta());
    check_metadata(&meta, metadata);
    let mut others = fields.clone();
    others.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    check_contents(&object, &others, meta.left_out.is_some());
    let contents = packed(&object);
    let bounded: Bounded<Secret> = serde_json::from_str(&text).expect("the object is read");
    check_bounded(&bounded, &meta, &contents);
}

/// What is nested too deep is not read, too.
fn read<'t, T: serde::Deserialize<'t>>(text: &'t str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn packed(object: &RawObject) -> String {
    object.clone().pack().data.as_str().expect("a text").to_owned()
}

fn check_metadata(meta: &Meta<Secret>, text: &str) {
    let Meta { metadata: known, left_out, .. } = meta;
    if let Some(whole) = read::<ObjectMeta>(text).filter(|_| weight(text.as_bytes()) <= HEAVIEST_METADATA) {
        assert_eq!((known, *left_out), (&whole, None));
        return;
    }
    let fields: Fields<'_> = read(text).expect("its fields are read");
    assert_eq!(*left_out, LIMITED.into_iter().find(|name| is_heavy(&fields, name)));
    assert_eq!(known.name, of(&fields, "name"));
    assert_eq!(known.uid, of(&fields, "uid"));
    assert_eq!(known.resource_version, of(&fields, "resourceVersion"));
    assert_eq!(known.labels, of(&fields, "labels"));
    assert_eq!(known.finalizers, of(&fields, "finalizers"));
    assert!(known.owner_references.is_none() || !is_heavy(&fields, "ownerReferences"));
    assert!(known.managed_fields.is_none());
    if !is_heavy(&fields, "annotations") {
        assert_eq!(known.annotations, of(&fields, "annotations"));
    } else if let Some(settings) = &known.annotations {
        assert!(settings.len() == 1 && settings.values().all(|setting| setting.len() <= SETTING), "{settings:?}");
    }
}

fn is_heavy(fields: &Fields<'_>, name: &str) -> bool {
    fields.get(name).is_some_and(|field| weight(field.get().as_bytes()) > HEAVIEST_FIELD)
}

/// A field that is not too heavy.
fn of<T: DeserializeOwned>(fields: &Fields<'_>, name: &str) -> Option<T> {
    let field = fields.get(name).filter(|_| !is_heavy(fields, name))?;
    read::<Option<T>>(field.get()).expect("it is read with the others")
}

fn check_contents(object: &RawObject, fields: &Fields<'_>, is_marked: bool) {
    let contents = packed(object);
    let texts = |fields: &Fields<'_>| {
        let texts = fields.iter().map(|(name, field)| (name.clone(), field.get().to_owned()));
        texts.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(texts(&read(&contents).expect("an object")), texts(fields));
    let data = object.clone().read().data;
    let whole = read::<Value>(&contents).filter(|_| weight(contents.as_bytes()) <= HEAVIEST);
    match whole {
        Some(whole) => assert!(is_marked || data == whole),
        None if fields.len() <= FIELDS => {
            let absent = fields.keys().find(|name| data.get(name.as_str()).is_none());
            assert_eq!(absent, None, "it looks absent");
        }
        None => assert!(data.is_string()),
    }
    let taken = taken(&data);
    assert!(taken <= HEAVIEST + REASONS, "{taken} bytes");
    let short = object.clone().read_within(contents.len().saturating_sub(1)).data;
    assert!(short.is_null());
}

fn check_bounded(bounded: &Bounded<Secret>, meta: &Meta<Secret>, contents: &str) {
    let whole = read::<Secret>(contents).filter(|_| weight(contents.as_bytes()) <= HEAVIEST);
    let left_out = if whole.is_some() { meta.left_out } else { Some(CONTENTS) };
    assert_eq!(bounded.left_out, left_out);
    assert_eq!(bounded.object, Secret { metadata: meta.metadata.clone(), ..whole.unwrap_or_default() });
}
