use super::*;
use crate::csr::CLUSTER_LABEL;

const C1: Cluster<'_> = Cluster { name: "c1", uid: "u1" };

fn documents(all: impl IntoIterator<Item = DesiredGrant>) -> String {
    let all: Vec<Value> = all.into_iter().map(|wanted| wanted.document).collect();
    serde_json::to_string_pretty(&all).unwrap() + "\n"
}

/// What is kept of an object on the hub.
fn seen(object: &Value) -> ObservedGrant {
    ObservedGrant::of(serde_json::from_value(object["metadata"].clone()).unwrap(), object)
}

fn difference(existing: &Value, wanted: &DesiredGrant) -> Difference {
    seen(existing).difference(wanted)
}

/// Upstream's files of v1.2.0 with `c1` in them, plus our tunnel and our credential; a person
/// reviewed them once.
#[test]
fn the_objects_are_upstreams() {
    for (name, found, golden) in [
        ("granted", documents(C1.granted(true)), include_str!("golden/granted.json")),
        ("left", documents(C1.left()), include_str!("golden/left.json")),
        ("common", documents(common_roles(Some("cluster-gateway"))), include_str!("golden/common.json")),
    ] {
        assert_eq!(found, golden, "{name}");
    }
}

#[test]
fn a_no_takes_every_binding_but_the_look_at_itself() {
    let granted: Vec<Key> = C1.granted(true).into_iter().map(|wanted| wanted.key).collect();
    let mut gone: Vec<Key> = C1.withdrawn().into_iter().chain(C1.ended()).collect();
    gone.push(C1.namespace_key());
    gone.sort();
    let mut all = granted;
    all.sort();
    assert_eq!(gone, all, "what is given is taken, the namespace apart");
    assert!(C1.withdrawn()[0].name.ends_with(":tunnel"), "first of all");
    assert_eq!(C1.left().map(|wanted| wanted.key.kind), [Kind::ClusterRole, Kind::ClusterRoleBinding]);
}

/// Only one Secret, by name, in the agent's own namespace: no agent reads another Secret, or
/// another cluster's.
#[test]
fn the_right_to_fill_a_secret_is_given_only_where_it_is_read() {
    let binding = |wanted: &DesiredGrant| wanted.key.name.ends_with(":credential");
    let given = C1.granted(true);
    let own = given.iter().find(|wanted| binding(wanted)).unwrap();
    assert_eq!((own.key.kind, &*own.key.namespace), (Kind::RoleBinding, "c1"));
    assert!(is_common(own.document["roleRef"]["name"].as_str().unwrap()));
    assert!(!C1.granted(false).iter().any(binding) && common_roles(None).len() == 2);
    let role = common_roles(Some("token")).pop().unwrap();
    for rule in role.document["rules"].as_array().unwrap() {
        assert_eq!(rule["resourceNames"], json!(["token"]), "{rule}");
    }
}

#[test]
fn what_is_there_already_is_no_difference() {
    for wanted in C1.granted(true).into_iter().chain(C1.left()).chain(common_roles(Some("cluster-gateway"))) {
        let mut existing = wanted.document.clone();
        existing["metadata"]["labels"]["other"] = json!("x");
        existing["metadata"]["resourceVersion"] = json!("1");
        assert_eq!(difference(&existing, &wanted), Difference::Nothing, "{existing}");
    }
}

#[test]
fn what_somebody_changed_is_a_difference() {
    let [_, role, tunnel_role, _, _, work, _, _] = <[DesiredGrant; 8]>::try_from(C1.granted(true)).unwrap();
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ManagedCluster", "name": "c1", "uid": uid});
    let changed = |wanted: &DesiredGrant, path: &str, value: Value| {
        let mut existing = wanted.document.clone();
        *existing.pointer_mut(path).unwrap() = value;
        difference(&existing, wanted)
    };
    for (wanted, path, value, expected) in [
        (&role, "/rules", json!([]), Difference::Fields),
        (&role, "/metadata/labels", json!({}), Difference::Fields),
        (&tunnel_role, "/rules/0/resourceNames", json!(["c1", "c2"]), Difference::Fields),
        (&tunnel_role, "/metadata/ownerReferences", json!([owner("u0")]), Difference::Fields),
        (&work, "/subjects", json!([]), Difference::Fields),
        (&work, "/metadata/finalizers", json!([]), Difference::Fields),
        (&work, "/roleRef/name", json!("cluster-admin"), Difference::Whole),
    ] {
        assert_eq!(changed(wanted, path, value), expected, "{path}");
    }
    let mut leaving = work.document.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(difference(&leaving, &work), Difference::Whole, "held by its finalizer");
    let denied = &C1.left()[0];
    assert_eq!(difference(&role.document, denied), Difference::Fields, "a no takes the rights of the role");
}

/// Nothing is lost of one that somebody changed and put back, and nothing is found in one whose
/// contents were not read.
#[test]
fn contents_are_compared_and_not_only_whether_there_are_any() {
    for wanted in C1.granted(true) {
        let again: Value = serde_json::from_str(&wanted.document.to_string()).unwrap();
        assert_eq!(difference(&again, &wanted), Difference::Nothing, "{again}");
        let unread = json!({"metadata": again["metadata"]});
        let is_right = wanted.key.kind != Kind::Namespace;
        assert_eq!(difference(&unread, &wanted) != Difference::Nothing, is_right, "{again}");
        for field in ["rules", "subjects"] {
            let Some(list) = again[field].as_array() else { continue };
            let mut more = again.clone();
            more[field] = [list.clone(), list.clone()].concat().into();
            assert_eq!(difference(&more, &wanted), Difference::Fields, "{more}");
        }
    }
}

#[test]
fn the_key_of_a_right_names_its_cluster() {
    for wanted in C1.granted(true) {
        assert_eq!(made_for(&wanted.key), Some("c1"), "{:?}", wanted.key);
    }
    let own = |name: &str| Key { kind: Kind::ClusterRole, namespace: String::new(), name: name.to_owned() };
    assert_eq!([made_for(&own(CREDENTIAL)), made_for(&own("admin"))], [None; 2]);
}

/// Anybody who may write the object may add any number of either.
#[test]
fn of_very_many_finalizers_and_owners_those_that_count_are_kept() {
    let owner = |kind: &str, uid: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": uid});
    let mut work = C1.work().document;
    work["metadata"]["finalizers"] = json!(["a/b", WORK_FINALIZER]);
    assert_eq!(seen(&work).without_work_finalizer(), Some(&[Box::from("a/b")][..]));
    let many = (0..10_000).map(|number| json!(format!("a/{number}"))).chain([json!(WORK_FINALIZER)]);
    work["metadata"]["finalizers"] = many.collect();
    let found = seen(&work);
    assert_eq!(found.without_work_finalizer(), Some(&[][..]));
    assert_eq!(found.difference(&C1.work()), Difference::Nothing);

    let tunnel = C1.tunnel_role();
    let mut owned = tunnel.document.clone();
    let many = (0..10_000).map(|_| owner("Other", &"u".repeat(1000))).chain([owner("ManagedCluster", "u1")]);
    owned["metadata"]["ownerReferences"] = many.collect();
    assert_eq!(difference(&owned, &tunnel), Difference::Nothing);
    assert!(format!("{:?}", seen(&owned)).len() < 1000);
}

#[test]
fn a_namespace_is_the_clusters_if_it_says_so() {
    let labelled = |value: &str| seen(&json!({"metadata": {"labels": {CLUSTER_LABEL: value}}}));
    assert!(labelled("c1").is_of("c1"));
    assert!(!labelled("c2").is_of("c1") && !seen(&json!({"metadata": {}})).is_of("c1"));
}

/// A user that may write `RoleBinding`s in a namespace chooses any names and labels.
#[test]
fn only_what_acceptance_makes_is_called_so() {
    for wanted in C1.granted(true).into_iter().chain(C1.left()).chain(common_roles(Some("cluster-gateway"))) {
        let Key { kind, namespace, name } = &wanted.key;
        assert!(is_made(*kind, namespace, name), "{name}");
    }
    let registration = C1.registration().key;
    assert!(!is_made(Kind::RoleBinding, "elsewhere", &registration.name));
    assert!(!is_made(Kind::RoleBinding, "c1", "admins") && !is_made(Kind::ClusterRole, "", "cluster-admin"));
    assert!(!is_made(Kind::RoleBinding, "c1", &format!("{}2", registration.name)));
}
