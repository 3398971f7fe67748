//! Any lists of two members made one: a document in which each item names its member, whatever the
//! members send.
//!
//! Input: in the first line `table`, or anything else for lists; then a member's list in a line.

use api::karmada_cluster::merge::{Asked, CLUSTER_ANNOTATION, Head, Merged};
use serde::de::IgnoredAny;
use serde_json::Value;

pub const WORDS: &[&str] = &[
    "table\n",
    "\n",
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[",
    "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\"}],\"rows\":[",
    "\"items\":[",
    "\"rows\":null",
    "{\"metadata\":{\"name\":\"a\"}}",
    "{\"cells\":[\"a\"],\"object\":{\"metadata\":{}}}",
    "\"object\":null",
    "\"annotations\":{",
    "null,",
    "\"annotations\":null",
    "\"metadata\":{},\"metadata\":{}",
    "\"resource.karmada.io/cached-from-cluster\":\"paris\"",
    "\"\\u0072esource.karmada.io/cached-from-cluster\":\"paris\"",
    "\"meta\\u0064ata\":",
    "1e999",
    "\\ud800",
    "]}",
    "},",
];

const MEMBERS: [&str; 2] = ["berlin", "paris"];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (first, lists) = text.split_once('\n').unwrap_or((text, ""));
    let is_table = first == "table";
    let (kind, version) = if is_table { (Some("Table"), "meta.k8s.io/v1") } else { (None, "v1") };
    let asked = Asked { kind, api_version: version.to_owned() };
    let lists: Vec<_> = MEMBERS.iter().zip(lists.lines()).collect();
    let heads: Vec<_> = lists.iter().map(|(_, list)| Head::read(list.as_bytes(), &asked)).collect();
    let Some(head) = Head::most_common(heads.iter().flatten()).cloned() else { return };
    let mut merged = Merged::new(head, 0);
    let mut added = Vec::new();
    for ((member, list), head) in lists.iter().zip(&heads) {
        let Ok(head) = head else { continue };
        added.extend(merged.add(member, head, list.as_bytes()).is_ok().then_some(**member));
    }
    let document = merged.document();
    serde_json::from_slice::<IgnoredAny>(&document).expect("a document");
    // Parts that JSON has and some readers refuse pass as they are: half a surrogate pair, a number
    // beyond all floats.
    if let Ok(document) = serde_json::from_slice(&document) {
        hold(&document, is_table, &added);
    }
}

fn hold(document: &Value, is_table: bool, added: &[&str]) {
    let items = document[if is_table { "rows" } else { "items" }].as_array().expect("items");
    // A row may be without its object, as it was asked for (`includeObject=None`). An item is one.
    let objects = items.iter().filter_map(|item| match (is_table, &item["object"]) {
        (true, Value::Null) => None,
        (true, object) => Some(object),
        (false, _) => Some(item),
    });
    let mut last = 0;
    for object in objects {
        let mark = &object["metadata"]["annotations"][CLUSTER_ANNOTATION];
        let at = added.iter().position(|member| mark == *member).expect("one of those that answered");
        assert!(at >= last, "items of {mark} after those of {}", added[last]);
        last = at;
    }
}
