use serde_json::{Value, json};

use super::*;

fn asked(kind: Option<&'static str>, api_version: &str) -> Asked {
    Asked { kind, api_version: api_version.to_owned() }
}

fn pods() -> Asked {
    asked(None, "v1")
}

fn tables() -> Asked {
    asked(Some("Table"), "meta.k8s.io/v1")
}

fn one(asked: &Asked, lists: &[(&str, String)]) -> (Value, Vec<Result<(), NotAlike>>) {
    let heads: Vec<_> = lists.iter().map(|(_, json)| Head::read(json.as_bytes(), asked)).collect();
    let head = Head::most_common(heads.iter().flatten()).expect("one at least").clone();
    let mut merged = Merged::new(head, 0);
    let mut add = |(cluster, json): &(&str, String), head: &Result<Head, NotAlike>| {
        merged.add(cluster, head.as_ref().map_err(|why| *why)?, json.as_bytes())
    };
    let added = lists.iter().zip(&heads).map(|(list, head)| add(list, head)).collect();
    (serde_json::from_slice(&merged.document()).expect("JSON"), added)
}

fn merged(asked: &Asked, lists: &[(&str, Value)]) -> Value {
    let lists: Vec<_> = lists.iter().map(|(cluster, list)| (*cluster, list.to_string())).collect();
    let (found, added) = one(asked, &lists);
    assert!(added.iter().all(Result::is_ok), "{added:?}");
    found
}

#[test]
fn items_are_marked_and_keep_what_they_have() {
    let list = |items: Value| json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items});
    let first = json!([{"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"big": 1e300}}]);
    let found = merged(
        &pods(),
        &[
            ("berlin", list(first)),
            ("paris", list(json!([]))),
            ("rome", list(json!([{"metadata": {"name": "b", "annotations": null}}, {"metadata": {}}]))),
        ],
    );
    assert_eq!((&found["kind"], &found["metadata"]), (&json!("PodList"), &json!({"resourceVersion": ""})));
    let marks: Vec<_> =
        (0..3).map(|item| found["items"][item]["metadata"]["annotations"][CLUSTER_ANNOTATION].clone()).collect();
    assert_eq!(marks, ["berlin", "rome", "rome"]);
    assert_eq!(found["items"][0]["metadata"]["annotations"]["x"], "y");
    assert_eq!(found["items"][0]["spec"], json!({"big": 1e300}));
    assert_eq!(merged(&pods(), &[("a", list(Value::Null))])["items"], json!([]));
}

/// With any spelling of the keys, and with repeated keys.
#[test]
fn a_member_cannot_mark_its_items_as_anothers() {
    let said = format!(r#""{CLUSTER_ANNOTATION}":"paris""#);
    let escaped = said.replace("resource", r"\u0072esource");
    for metadata in [
        format!(r#""metadata":{{"annotations":{{{said}}}}}"#),
        format!(r#""metadata":{{"annotations":{{"x":"y",{escaped}}}}}"#),
        format!(r#""metadata":{{"annotations":{{}},"\u0061nnotations":{{{said}}}}}"#),
        format!(r#""metadata":{{}},"m\u0065tadata":{{"annotations":{{{said}}}}}"#),
    ] {
        let list = format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{{{metadata}}}]}}"#);
        let (found, added) = one(&pods(), &[("berlin", list)]);
        assert_eq!(added, [Ok(())], "{metadata}");
        assert_eq!(found["items"][0]["metadata"]["annotations"][CLUSTER_ANNOTATION], "berlin", "{metadata}");
    }
    let object = marked("berlin", format!(r#"{{"metadata":{{"annotations":{{{said}}}}}}}"#).as_bytes());
    let object: Value = serde_json::from_slice(&object.expect("an object")).expect("JSON");
    assert_eq!(object["metadata"]["annotations"], json!({CLUSTER_ANNOTATION: "berlin"}));
    assert_eq!(marked("berlin", b"[1]"), None);
}

/// Marks are longer than short items, and keys that repeat would get one each.
#[test]
fn a_document_takes_little_more_than_its_items_and_their_marks() {
    let items = |item: &str, count: usize| {
        format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{}]}}"#, vec![item; count].join(","))
    };
    let list = items(r#"{"metadata":{}}"#, 20_000);
    let head = Head::read(list.as_bytes(), &pods()).expect("a list");
    let mut merged = Merged::new(head.clone(), list.len());
    assert_eq!(merged.add("berlin", &head, list.as_bytes()), Ok(()));
    let repeated = items(&format!("{{{}}}", vec![r#""metadata":{}"#; 20_000].join(",")), 1);
    assert_eq!(merged.add("paris", &head, repeated.as_bytes()), Ok(()));
    let taken = merged.capacity();
    let document = merged.document();
    assert!(document.len() < 2_000_000, "{} bytes", document.len());
    assert!(taken < document.len() / 4 * 5, "{taken} for {}", document.len());
    assert!(document.capacity() < document.len() + 100, "{} for {}", document.capacity(), document.len());
}

#[test]
fn rows_of_tables_are_marked() {
    let table = |columns: Value, object: Value| json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns, "rows": [{"cells": ["a"], "object": object}]});
    let columns = json!([{"name": "Name", "type": "string", "description": "of 1.35"}]);
    let older = json!([{"name": "Name", "type": "string", "description": "of 1.30"}]);
    let found = merged(
        &tables(),
        &[("berlin", table(columns.clone(), json!({"metadata": {"name": "a"}}))), ("paris", table(older, Value::Null))],
    );
    assert_eq!(found["columnDefinitions"], columns);
    assert_eq!(found["rows"][0]["object"]["metadata"]["annotations"][CLUSTER_ANNOTATION], "berlin");
    assert_eq!(found["rows"][1], json!({"cells": ["a"], "object": null}));
    let other = table(json!([]), Value::Null).to_string();
    let same = table(columns, Value::Null).to_string();
    let (_, added) = one(&tables(), &[("a", other), ("b", same.clone()), ("c", same)]);
    assert_eq!(added, [Err(NotAlike::Kind), Ok(()), Ok(())], "what most say decides");
}

#[test]
fn what_is_no_list_of_what_was_asked_for_is_not_merged() {
    let other = r#"{"kind":"PodList","apiVersion":"evil/v1","items":[]}"#;
    for json in ["", "[]", r#"{"kind":"Status","apiVersion":"v1"}"#, other] {
        assert_eq!(Head::read(json.as_bytes(), &pods()).err(), Some(NotAlike::Kind), "{json}");
    }
    let list = r#"{"kind":"PodList","apiVersion":"v1","items":[]}"#.to_owned();
    assert!(Head::read(list.as_bytes(), &tables()).is_err());
    let half = r#"{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{}},{"spec":1}]}"#.to_owned();
    let (found, added) = one(&pods(), &[("a", list), ("b", half)]);
    assert_eq!((&found["items"], added), (&json!([]), vec![Ok(()), Err(NotAlike::Kind)]), "nothing is left of a half");
}

#[test]
fn items_have_a_limit_and_who_exceeds_it_is_left_out() {
    let list = |count: usize| {
        let items = vec![r#"{"metadata":{}}"#; count].join(",");
        format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{items}]}}"#)
    };
    let (found, added) = one(&pods(), &[("a", list(2)), ("b", list(MOST_ITEMS - 1)), ("c", list(MOST_ITEMS - 2))]);
    assert_eq!(added, [Ok(()), Err(NotAlike::TooMany), Ok(())]);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(MOST_ITEMS));
}
