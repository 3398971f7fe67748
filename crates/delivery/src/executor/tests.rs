use super::*;
use crate::identity::RBAC;
use crate::strategy::{Ignore, ServerSide, When};

fn identity(group: &str, resource: &str, namespace: &str) -> Identity {
    Identity { group: group.into(), resource: resource.into(), namespace: namespace.into(), name: "a".into() }
}

fn told(review: &Review) -> String {
    match review {
        Review::Resource { verb, group, resource, subresource, namespace, name, .. } => {
            format!("{verb} {group}/{resource}/{subresource} {namespace}/{name}")
        }
        Review::Url { verb, path } => format!("{verb} {path}"),
    }
}

fn all(reviews: &[Review]) -> Vec<String> {
    reviews.iter().map(told).collect()
}

#[test]
fn an_object_takes_four_verbs_and_deletion_where_it_is_owned() {
    let secret = identity("", "secrets", "n");
    let wanted = ["create", "update", "patch", "get", "delete"].map(|verb| format!("{verb} /secrets/ n/a"));
    let update = &Strategy::Update;
    assert_eq!(all(&reviews(&secret, "v1", true, update)), wanted);
    assert_eq!(all(&reviews(&secret, "v1", false, update)), wanted[..4]);
    assert_eq!(all(&reviews(&secret, "v1", false, &Strategy::ReadOnly)), ["get /secrets/ n/a"]);
    assert_eq!(escalated(&secret), "not allowed to apply the resource  secrets, n a, error: permission escalation");
    assert_eq!(refusal(&secret), "not allowed to apply the resource  secrets, n a");
    let executor = Executor { namespace: "n".into(), name: "sa".into() };
    let review = executor.review(&reviews(&secret, "v1", false, update)[0]);
    assert_eq!(review["spec"]["user"], "system:serviceaccount:n:sa");
    assert_eq!(review["spec"]["groups"][2], "system:serviceaccounts:n");
    assert_eq!(review["spec"]["resourceAttributes"]["verb"], "create");
    let url = executor.review(&Review::Url { verb: "get".into(), path: "/metrics".into() });
    assert_eq!(url["spec"]["nonResourceAttributes"], json!({"verb": "get", "path": "/metrics"}));
}

#[test]
fn a_role_takes_each_item_of_its_rules() {
    let role = json!({"rules": [
        {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get", "create"]},
        {"apiGroups": ["apps"], "resources": ["*"], "resourceNames": ["x", "y"], "verbs": ["*"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]});
    let Ok(Escalation::Rules { enough, each }) =
        escalation(&identity(RBAC, "roles", "n"), &role, None, &Strategy::Update)
    else {
        panic!("no rules")
    };
    assert_eq!(told(&enough), "escalate rbac.authorization.k8s.io/roles/ n/a");
    assert_eq!(
        all(&each),
        [
            "get /pods/ n/",
            "get /pods/exec n/",
            "create /pods/ n/",
            "create /pods/exec n/",
            "* apps/*/ n/x",
            "* apps/*/ n/y",
            "get /metrics"
        ]
    );
}

#[test]
fn a_role_that_gathers_others_takes_everything() {
    let role = json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []});
    let Ok(Escalation::Rules { each, .. }) =
        escalation(&identity(RBAC, "clusterroles", ""), &role, None, &Strategy::Update)
    else {
        panic!("no rules")
    };
    assert_eq!(all(&each), ["* */*/ /", "* *"]);
    assert_eq!(rules_of(&role, ""), Ok(vec![]), "who binds it gives what it allows now");
}

#[test]
fn a_binding_takes_the_right_to_bind_or_the_role() {
    let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "admin"}});
    let Ok(Escalation::Binding { enough, role }) =
        escalation(&identity(RBAC, "rolebindings", "n"), &binding, None, &Strategy::Update)
    else {
        panic!("no binding")
    };
    assert_eq!(told(&enough), "bind rbac.authorization.k8s.io/clusterroles/ n/admin");
    assert_eq!(role, Role { is_cluster_wide: true, name: "admin".into(), namespace: "n".into() });
    let other = escalation(&identity("apps", "roles", "n"), &binding, None, &Strategy::Update);
    assert_eq!(other, Ok(Escalation::None));
}

#[test]
fn rules_beyond_all_measure_are_refused() {
    let many: Vec<String> = (0..=ITEMS).map(|at| format!("r{at}")).collect();
    let wide = json!({"rules": [{"apiGroups": [""], "resources": many, "verbs": ["get"]}]});
    assert_eq!(rules_of(&wide, "n"), Err(Refused::TooMany));
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    assert_eq!(rules_of(&json!({"rules": vec![rule.clone(); ITEMS]}), "n").map(|all| all.len()), Ok(ITEMS));
    assert_eq!(rules_of(&json!({"rules": vec![rule; ITEMS + 1]}), "n"), Err(Refused::TooMany));
}

fn applied(ignore: Vec<Ignore>) -> Strategy {
    Strategy::ServerSideApply(ServerSide { ignore, ..ServerSide::default() })
}

#[test]
fn what_stays_of_a_role_by_server_side_apply_is_reviewed_too() {
    let role = identity(RBAC, "clusterroles", "");
    let labelled = json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}});
    let admin = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let each = |strategy: &Strategy, observed: &Json| match escalation(&role, &labelled, Some(observed), strategy) {
        Ok(Escalation::Rules { each, .. }) => all(&each),
        other => panic!("{other:?}"),
    };
    assert_eq!(each(&applied(vec![]), &admin), ["* */*/ /"]);
    assert_eq!(each(&applied(vec![]), &json!({"aggregationRule": {}})), ["* */*/ /", "* *"]);
    assert!(each(&Strategy::Update, &admin).is_empty(), "a PUT leaves nothing of it");
}

#[test]
fn ignored_fields_and_a_role_that_stays_unseen_are_refused() {
    let binding = identity(RBAC, "clusterrolebindings", "");
    let bound = |name: &str| json!({"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}});
    let of = |wanted: &Json, observed: Option<&Json>, strategy: &Strategy| {
        escalation(&binding, wanted, observed, strategy).err()
    };
    let (view, admin, plain) = (bound("view"), bound("cluster-admin"), applied(vec![]));
    let ignore = Ignore { when: When::Changed, paths: vec![], pointers: vec!["/roleRef".into()], jq: vec![] };
    assert_eq!(of(&view, None, &applied(vec![ignore])), Some(Refused::IgnoreFields));
    assert_eq!(of(&view, Some(&view), &plain), None);
    assert_eq!(of(&view, Some(&admin), &plain), Some(Refused::OtherRole));
    for odd in [json!({}), bound(""), json!({"roleRef": {"kind": "Role", "name": "a"}})] {
        assert_eq!(of(&odd, None, &plain), Some(Refused::NoRole), "{odd}");
    }
    let told = Refused::TooMany.report(&binding);
    assert!(told.starts_with("not allowed to apply the resource rbac.authorization.k8s.io "), "{told}");
}
