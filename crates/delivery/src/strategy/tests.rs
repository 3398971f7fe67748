use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;
use serde_json::json;

use super::{Strategy, *};
use crate::ownership::tests::owner;

const NO: Option<&Json> = None;

fn config_map() -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": {"a": "1"}})
}

/// The object as an API server stores it.
fn stored(object: &Json) -> Json {
    let mut stored = object.clone();
    let metadata = crate::fields::metadata(&mut stored).unwrap();
    for (field, value) in [("uid", "u"), ("resourceVersion", "7"), ("creationTimestamp", "2026-03-01T12:00:00Z")] {
        metadata.insert(field.into(), json!(value));
    }
    stored
}

fn asked(object: &Json, strategy: &Strategy, claim: Claim, observed: Option<&Json>) -> Action {
    let owner = owner("1");
    plan(&DesiredObject { object, owner: &owner, claim, strategy, known: Known::Nothing }, observed)
}

fn server_side(manager: &str, ignore: Vec<Ignore>) -> Strategy {
    Strategy::ServerSideApply(ServerSide { manager: manager.into(), force: false, ignore })
}

fn replicas(when: When) -> Ignore {
    Ignore { when, paths: vec![".spec.replicas".into()], pointers: Vec::new(), jq: Vec::new() }
}

#[test]
fn what_is_not_there_is_created_with_our_reference() {
    for strategy in [Strategy::Update, Strategy::CreateOnly] {
        let mut object = config_map();
        object["metadata"]["labels"] = json!({"a": "b", "gone-": ""});
        object["metadata"]["ownerReferences"] = json!([{"uid": "foreign"}]);
        let Action::Create(created) = asked(&object, &strategy, Claim::Own, NO) else { panic!("not created") };
        assert_eq!(created["metadata"]["ownerReferences"], json!([owner("1").reference()]));
        assert_eq!(created["metadata"]["labels"], json!({"a": "b"}));
        let Action::Create(orphan) = asked(&object, &strategy, Claim::Release, NO) else { panic!("not created") };
        assert_eq!(orphan["metadata"].get("ownerReferences"), None);
    }
}

#[test]
fn update_replaces_what_differs_and_keeps_what_others_put_there() {
    let mut observed = stored(&config_map());
    observed["metadata"]["labels"] = json!({"theirs": "x"});
    observed["metadata"]["finalizers"] = json!(["their.io/finalizer"]);
    observed["metadata"]["ownerReferences"] = json!([owner("2").reference()]);
    observed["data"] = json!({"a": "2", "added": "3"});
    let mut wanted = config_map();
    wanted["metadata"]["labels"] = json!({"ours": "y"});
    wanted["metadata"]["finalizers"] = json!(["not.io/ours"]);
    let Action::Replace(put) = asked(&wanted, &Strategy::Update, Claim::Own, Some(&observed)) else {
        panic!("not replaced")
    };
    assert_eq!(put["data"], json!({"a": "1"}));
    assert_eq!(
        put["metadata"],
        json!({"name": "a", "namespace": "n", "resourceVersion": "7", "labels": {"theirs": "x", "ours": "y"},
            "finalizers": ["their.io/finalizer"],
            "ownerReferences": [owner("2").reference(), owner("1").reference()]})
    );
}

#[test]
fn update_leaves_alone_what_is_as_it_should_be() {
    let Action::Create(created) = asked(&config_map(), &Strategy::Update, Claim::Own, NO) else { panic!() };
    let observed = stored(&created);
    assert_eq!(asked(&config_map(), &Strategy::Update, Claim::Own, Some(&observed)), Action::Nothing);
    let Action::Replace(put) = asked(&config_map(), &Strategy::Update, Claim::Release, Some(&observed)) else {
        panic!("the reference stays")
    };
    assert_eq!(put["metadata"]["ownerReferences"], json!([]));
}

#[test]
fn update_does_not_write_again_what_the_member_filled_in() {
    let mut filled = stored(&config_map());
    filled["metadata"]["ownerReferences"] = json!([owner("1").reference()]);
    filled["immutable"] = json!(false);
    let (object, us) = (config_map(), owner("1"));
    let with = |known, observed: &Json| {
        let strategy = &Strategy::Update;
        plan(&DesiredObject { object: &object, owner: &us, claim: Claim::Own, strategy, known }, Some(observed))
    };
    let answered = Known::Answered(AnswerHashes::of(&object, &filled));
    assert!(matches!(with(Known::Nothing, &filled), Action::Replace(_)));
    assert_eq!((with(Known::Applied, &filled), with(answered, &filled)), (Action::Nothing, Action::Nothing));
    let mut drifted = filled.clone();
    drifted["data"]["added"] = json!("by hand");
    assert!(matches!(with(answered, &drifted), Action::Replace(_)));
    let mut labelled = filled;
    labelled["metadata"]["ownerReferences"] = json!([]);
    assert!(matches!(with(Known::Applied, &labelled), Action::Replace(_)), "our reference was taken off");
}

#[test]
fn of_some_kinds_only_the_metadata_is_brought_to_what_is_wanted() {
    for kind in ["Pod", "Namespace", "ServiceAccount"] {
        let mut wanted = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"x": 1}});
        let Action::Create(created) = asked(&wanted, &Strategy::Update, Claim::Own, NO) else { panic!() };
        let mut filled = stored(&created);
        filled["spec"] = json!({"x": 1, "nodeName": "n"});
        filled["secrets"] = json!([{"name": "s"}]);
        filled["status"] = json!({"phase": "Running"});
        assert_eq!(asked(&wanted, &Strategy::Update, Claim::Own, Some(&filled)), Action::Nothing, "{kind}");
        wanted["metadata"]["labels"] = json!({"a": "b"});
        let Action::Replace(put) = asked(&wanted, &Strategy::Update, Claim::Own, Some(&filled)) else { panic!() };
        assert_eq!((&put["spec"], &put["secrets"]), (&filled["spec"], &filled["secrets"]));
        assert_eq!(put["metadata"]["labels"], json!({"a": "b"}));
    }
}

#[test]
fn create_only_touches_nothing_but_our_reference() {
    let mut observed = stored(&config_map());
    observed["data"] = json!({"a": "other"});
    let Action::PatchOwners(patch) = asked(&config_map(), &Strategy::CreateOnly, Claim::Own, Some(&observed)) else {
        panic!("not owned")
    };
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    observed["metadata"]["ownerReferences"] = json!([owner("1").reference()]);
    assert_eq!(asked(&config_map(), &Strategy::CreateOnly, Claim::Own, Some(&observed)), Action::Nothing);
}

#[test]
fn read_only_writes_nothing() {
    for observed in [None, Some(&config_map())] {
        assert_eq!(asked(&config_map(), &Strategy::ReadOnly, Claim::Own, observed), Action::Read);
    }
    let mut ours = stored(&config_map());
    ours["metadata"]["ownerReferences"] = json!([owner("2").reference(), owner("1").reference()]);
    let Action::PatchOwners(patch) = asked(&config_map(), &Strategy::ReadOnly, Claim::Own, Some(&ours)) else {
        panic!("it stays ours")
    };
    assert_eq!(patch["metadata"]["ownerReferences"], json!([owner("2").reference()]));
}

#[test]
fn server_side_apply_takes_managers_of_its_name() {
    let mut object = config_map();
    object["metadata"]["creationTimestamp"] = Json::Null;
    for (manager, used) in [("", "work-agent"), ("work-agent-2", "work-agent-2")] {
        let action = asked(&object, &server_side(manager, vec![]), Claim::Own, NO);
        let wanted = Action::Apply { object: config_map(), manager: used.into(), force: false };
        assert_eq!(action, wanted);
    }
    let long = format!("work-agent{}", "x".repeat(128));
    for manager in ["kubectl", "my-work-agent", "work-agent\n", &long] {
        let action = asked(&object, &server_side(manager, vec![]), Claim::Own, NO);
        assert!(matches!(action, Action::Refused(Refusal::FieldManager(_))), "{manager}: {action:?}");
    }
}

#[test]
fn what_was_applied_server_side_and_is_still_there_is_not_applied_again() {
    let (object, us, strategy) = (config_map(), owner("1"), server_side("", vec![]));
    let with = |known, observed: &Json| {
        plan(
            &DesiredObject { object: &object, owner: &us, claim: Claim::Own, strategy: &strategy, known },
            Some(observed),
        )
    };
    let mut answer = stored(&object);
    answer["metadata"]["ownerReferences"] = json!([us.reference()]);
    answer["immutable"] = json!(false);
    let answered = Known::Answered(AnswerHashes::of(&object, &answer));
    assert_eq!((with(Known::Applied, &answer), with(answered, &answer)), (Action::Nothing, Action::Nothing));
    assert!(matches!(with(Known::Nothing, &answer), Action::Apply { .. }));
    answer["data"]["a"] = json!("by hand");
    for known in [Known::Applied, answered] {
        assert!(matches!(with(known, &answer), Action::Apply { .. }), "{known:?}");
    }
}

#[test]
fn fields_that_others_apply_beside_ours_are_let_be() {
    let (us, strategy) = (owner("1"), server_side("", vec![]));
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {"l": "1"}},
        "spec": {"paused": true, "template": {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}}});
    let main = json!({".": {}, "f:name": {}, "f:image": {}});
    let mut fields = json!({"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:paused": {},
        "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": main}}}}});
    let with = |object: &Json, known, observed: &Json| {
        plan(&DesiredObject { object, owner: &us, claim: Claim::Own, strategy: &strategy, known }, Some(observed))
    };
    let mut answer = stored(&object);
    answer["metadata"]["ownerReferences"] = json!([us.reference()]);
    let answered = Known::Answered(AnswerHashes::of(&object, &answer));
    let managed = |answer: &mut Json, fields: &Json| {
        let entry = json!({"manager": "work-agent", "operation": "Apply", "fieldsV1": fields});
        answer["metadata"]["managedFields"] = json!([entry]);
    };
    managed(&mut answer, &fields);
    answer["spec"]["replicas"] = json!(5);
    assert_eq!(with(&object, answered, &answer), Action::Nothing, "an autoscaler's");
    let is_applied = |object: &Json, answer: &Json| matches!(with(object, answered, answer), Action::Apply { .. });
    let mut drifted = answer.clone();
    drifted["spec"]["paused"] = json!(false);
    assert!(is_applied(&object, &drifted), "ours");
    // What the manifest drops must be removed, in its metadata too.
    let (mut without, mut unlabelled) = (object.clone(), object.clone());
    without["spec"].as_object_mut().unwrap().remove("paused");
    unlabelled["metadata"].as_object_mut().unwrap().remove("labels");
    assert!(is_applied(&without, &answer) && is_applied(&unlabelled, &answer));
    // Another manager has taken it, with the same value.
    fields["f:spec"].as_object_mut().unwrap().remove("f:paused");
    managed(&mut answer, &fields);
    assert!(is_applied(&object, &answer));
}

#[test]
fn server_side_apply_sets_no_finalizer_and_rbac_objects_only_as_they_were_seen() {
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [],
        "metadata": {"name": "a", "namespace": "n", "finalizers": ["x.io/y"]}});
    let observed = stored(&role);
    let of = |object: &Json, observed| match asked(object, &server_side("", vec![]), Claim::Own, observed) {
        Action::Apply { object, .. } => object["metadata"].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&role, NO), json!({"name": "a", "namespace": "n"}));
    assert_eq!(of(&role, Some(&observed)), json!({"name": "a", "namespace": "n", "resourceVersion": "7"}));
    role["apiVersion"] = json!("x.io/v1");
    assert_eq!(of(&role, Some(&observed)), json!({"name": "a", "namespace": "n"}));
}

#[test]
fn ignored_fields_are_applied_once_and_left_out_afterwards() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"replicas": 2, "paused": true}});
    let strategy = server_side("", vec![replicas(When::Present)]);
    let Action::Apply { object: first, .. } = asked(&deployment, &strategy, Claim::Own, NO) else { panic!() };
    assert_eq!(first["spec"], deployment["spec"]);
    // Other wanted replicas change nothing; any other change is applied without replicas.
    let mut observed = stored(&first);
    observed["metadata"]["ownerReferences"] = json!([owner("1").reference()]);
    let mut wish = deployment.clone();
    wish["spec"]["replicas"] = json!(9);
    assert_eq!(asked(&wish, &strategy, Claim::Own, Some(&observed)), Action::Nothing);
    wish["spec"]["paused"] = json!(false);
    let Action::Apply { object, .. } = asked(&wish, &strategy, Claim::Own, Some(&observed)) else { panic!() };
    assert_eq!(object["spec"], json!({"paused": false}));
    assert_ne!(object["metadata"]["annotations"], first["metadata"]["annotations"]);
    // The reference follows the claim, though nothing else is applied.
    let action = asked(&deployment, &strategy, Claim::Release, Some(&observed));
    assert!(matches!(action, Action::PatchOwners(_)), "{action:?}");
}

#[test]
fn fields_ignored_until_a_change_are_applied_with_it() {
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 2}});
    let strategy = server_side("", vec![replicas(When::Changed)]);
    let Action::Apply { object: first, .. } = asked(&deployment, &strategy, Claim::Own, NO) else { panic!() };
    let mut observed = stored(&first);
    observed["spec"]["replicas"] = json!(5);
    assert!(matches!(asked(&deployment, &strategy, Claim::Own, Some(&observed)), Action::PatchOwners(_)));
    let mut wish = deployment;
    wish["spec"]["replicas"] = json!(3);
    let Action::Apply { object, .. } = asked(&wish, &strategy, Claim::Own, Some(&observed)) else { panic!() };
    assert_eq!(object["spec"]["replicas"], 3);
}

#[test]
fn ignored_fields_that_cannot_be_are_told() {
    let many = vec![replicas(When::Changed); ignore::SELECTORS + 1];
    let action = asked(&config_map(), &server_side("", many), Claim::Own, NO);
    assert_eq!(action, Action::Refused(Refusal::Ignore(IgnoreError::TooMany)));
    for path in ["/metadata/name", "/kind"] {
        let ignore = Ignore { when: When::Present, paths: vec![], pointers: vec![path.into()], jq: vec![] };
        let action = asked(&config_map(), &server_side("", vec![ignore]), Claim::Own, NO);
        assert_eq!(action, Action::Refused(Refusal::Ignore(IgnoreError::Identity)));
    }
}

/// What the API server has after `action`.
fn done(action: Action, observed: Option<&Json>) -> Json {
    match action {
        Action::Create(object) | Action::Replace(object) | Action::Apply { object, .. } => stored(&object),
        Action::PatchOwners(patch) => {
            let mut object = observed.unwrap().clone();
            object["metadata"]["ownerReferences"] = patch["metadata"]["ownerReferences"].clone();
            object
        }
        Action::Nothing | Action::Read | Action::Refused(_) => observed.cloned().unwrap_or_default(),
    }
}

fn value() -> impl Generator<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (0..5i64).prop_map(Json::from),
        "[a-c]?".prop_map(Json::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Generator<Value = Json> {
    let map = || prop::collection::btree_map("[a-c]-?", "[x-z]", 0..3);
    (map(), map(), value()).prop_map(|(labels, annotations, spec)| {
        json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a", "labels": labels, "annotations": annotations}, "spec": spec})
    })
}

proptest! {
    #[test]
    fn a_plan_that_was_carried_out_has_nothing_left_to_do(
        wanted in object(), observed in prop::option::of(object()), releases in any::<bool>(), is_update in any::<bool>(),
    ) {
        let observed = observed.map(|object| stored(&object));
        let claim = if releases { Claim::Release } else { Claim::Own };
        let strategy = if is_update { Strategy::Update } else { Strategy::CreateOnly };
        let after = done(asked(&wanted, &strategy, claim, observed.as_ref()), observed.as_ref());
        prop_assert_eq!(asked(&wanted, &strategy, claim, Some(&after)), Action::Nothing);
        prop_assert_eq!(owner("1").owns(&after), claim == Claim::Own);
        if is_update || observed.is_none() {
            prop_assert!(alike(&wanted["spec"], after.get("spec")));
            for (key, value) in ["labels", "annotations"].iter().flat_map(|name| {
                let all = wanted["metadata"][name].as_object().unwrap();
                all.iter().map(move |(key, value)| (format!("/metadata/{name}/{key}"), value))
            }) {
                match key.strip_suffix('-') {
                    Some(gone) => prop_assert_eq!(after.pointer(gone), None),
                    None if wanted.pointer(&format!("{key}-")).is_some() => {}
                    None => prop_assert_eq!(after.pointer(&key), Some(value)),
                }
            }
        }
    }
}
