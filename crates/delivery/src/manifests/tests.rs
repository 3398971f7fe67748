use proptest::prelude::*;
use serde_json::json;

use super::*;

/// `Namespace` is cluster-scoped, there is no `Nothing`, `Dark` is unknown, everything else is
/// namespaced.
fn resource(_: &str, _: &str, kind: &str) -> Lookup {
    match kind {
        "Nothing" => Lookup::Missing,
        "Dark" => Lookup::Unknown("503".into()),
        kind => {
            Lookup::Found(Resource { name: format!("{}s", kind.to_lowercase()), is_namespaced: kind != "Namespace" })
        }
    }
}

fn object(kind: &str, name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}})
}

#[test]
fn a_bad_one_is_an_entry_with_its_error() {
    let mut deep = json!({});
    for _ in 0..LEVELS {
        deep = json!({"a": deep});
    }
    let mut nested = object("ConfigMap", "deep");
    nested["data"] = deep;
    let bad = |part, value: &str| Fault::BadPart(BadPart { part, value: value.into() });
    for (manifest, fault) in [
        (json!("text"), Fault::NoObject),
        (json!({"apiVersion": "v1"}), Fault::NoKind),
        (json!({"kind": "ConfigMap"}), Fault::NoVersion),
        (nested, Fault::TooDeep),
        (object("ConfigMap", ""), Fault::NoName),
        (object("ConfigMap", "a/../b"), bad("metadata.name", "a/../b")),
        (object("ConfigMap", "a?b"), bad("metadata.name", "a?b")),
        (json!({"apiVersion": "a/../b", "kind": "Pod", "metadata": {"name": "a"}}), bad("version", "../b")),
        (object("Dark", "a"), Fault::Undiscovered("503".into())),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}), Fault::GenerateName),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), Fault::NoNamespace("pods".into())),
        (object("Nothing", "a"), Fault::UnknownKind("Nothing".into())),
    ] {
        let beside = object("Secret", "good");
        let read = read(&[manifest, beside], resource);
        assert_eq!(read[0].object, Err(fault));
        assert!(read[1].object.is_ok(), "{:?}", read[1]);
    }
    assert_eq!(Fault::UnknownKind("Widget".into()).to_string(), "the server doesn't have a resource type \"Widget\"");
}

#[test]
fn roles_come_before_what_binds_them() {
    let kinds = ["RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole"];
    let read = read(&kinds.map(|kind| object(kind, "a")), resource);
    let [others, bindings] = bindings_last(ranked(&read).remove(0).1);
    let ordinals = |some: &[&Manifest]| some.iter().map(|one| one.ordinal).collect::<Vec<_>>();
    assert_eq!((ordinals(&others), ordinals(&bindings)), (vec![1, 3], vec![0, 2]));
}

#[test]
fn the_second_of_two_is_a_duplicate_whatever_its_version() {
    let mut other = object("ConfigMap", "a");
    other["apiVersion"] = json!("v2");
    let read = read(&[object("ConfigMap", "a"), object("Secret", "a"), other], resource);
    assert!(read[0].object.is_ok() && read[1].object.is_ok());
    assert_eq!(read[2].object, Err(Fault::Duplicate(0)));
}

#[test]
fn what_only_the_api_server_sets_is_dropped() {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "x"}, "metadata": {
        "name": "a", "namespace": "odd", "uid": "1", "resourceVersion": "2", "creationTimestamp": null,
        "managedFields": [], "ownerReferences": [{"uid": "x"}], "labels": {"a": "b"}}});
    let read = read(&[manifest], resource);
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"a": "b"}}});
    assert_eq!(read[0].object, Ok(wanted));
    assert_eq!(read[0].identity(), Identity { resource: "namespaces".into(), name: "a".into(), ..Identity::default() });
}

#[test]
fn the_texts_of_a_secret_become_its_data() {
    let mut secret = object("Secret", "a");
    secret["stringData"] = json!({"a": "text", "b": "new"});
    secret["data"] = json!({"b": "b2xk", "c": "Yw=="});
    let found = read(std::slice::from_ref(&secret), resource)[0].object.clone().unwrap();
    assert_eq!(found["data"], json!({"a": "dGV4dA==", "b": "bmV3", "c": "Yw=="}));
    assert_eq!((found.get("stringData"), &found["type"]), (None, &json!("Opaque")));
    secret["apiVersion"] = json!("x.io/v1");
    assert!(read(&[secret], resource)[0].object.as_ref().unwrap().get("stringData").is_some());
}

proptest! {
    #[test]
    fn the_order_is_by_rank_and_stable(
        kinds in prop::collection::vec(prop::sample::select(vec!["Namespace", "Role", "Secret", "Service", "Pod", "Widget", ""]), 0..40)
    ) {
        let manifests: Vec<Json> = kinds.iter().enumerate().map(|(at, kind)| object(kind, &format!("n{at}"))).collect();
        let read = read(&manifests, resource);
        let ranked = ranked(&read);
        let flat: Vec<(u16, usize)> =
            ranked.iter().flat_map(|(rank, all)| all.iter().map(|one| (*rank, one.ordinal))).collect();
        prop_assert_eq!(flat.len(), manifests.len());
        prop_assert!(flat.windows(2).all(|pair| pair[0] < pair[1]), "{flat:?}");
        prop_assert!(ranked.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
