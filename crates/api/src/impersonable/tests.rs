use serde_json::{Value, json};

use super::*;

/// A kube-apiserver's response, with `rules` about impersonation in addition to its own.
fn told(rules: &Value) -> Result<Impersonable, Untold> {
    let mut all = vec![
        json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectrulesreviews"]}),
        json!({"verbs": ["get"], "apiGroups": [""], "resources": ["groups", "uids"], "resourceNames": null}),
    ];
    all.extend(rules.as_array().expect("rules").iter().cloned());
    let review = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
        "status": {"resourceRules": all, "nonResourceRules": [], "incomplete": false}});
    Impersonable::parse(review.to_string().as_bytes())
}

fn rule(group: &str, resource: &str, names: &[&str]) -> Value {
    let names = if names.is_empty() { Value::Null } else { json!(names) };
    json!({"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource], "resourceNames": names})
}

#[test]
fn named_groups_are_those_and_no_others() {
    // As Karmada's controller writes it: one rule for users, one for groups, one for accounts.
    let rules = json!([
        rule("", "users", &["alice"]),
        rule("", "groups", &["devs", "system:serviceaccounts"]),
        rule("", "serviceaccounts", &["tom"]),
    ]);
    let told = told(&rules).expect("a review");
    assert!(told.has_group("devs") && told.has_group("system:serviceaccounts") && told.is_complete());
    for other in ["", "alice", "dev", "devs ", "Devs", "tom", "*"] {
        assert!(!told.has_group(other), "{other}");
    }
    assert!(!told.has_uid("7") && !told.has_extra("scopes", "a"));
}

#[test]
fn rules_without_names_and_stars_are_about_all() {
    for rule in [
        rule("", "groups", &[]),
        rule("*", "groups", &[]),
        rule("", "*", &[]),
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
    ] {
        assert!(told(&json!([rule])).expect("a review").has_group("anybody"), "{rule}");
    }
    // RBAC has no wildcard among names.
    assert!(!told(&json!([rule("", "groups", &["*"])])).expect("a review").has_group("anybody"));
    assert!(!told(&json!([rule("apps", "groups", &[])])).expect("a review").has_group("anybody"));
    let all = told(&json!([rule("", "groups", &["a"]), rule("", "groups", &[]), rule("", "groups", &["b"])]));
    assert!(all.expect("a review").has_group("c"), "one rule allows what another does not");
}

/// A member lists its rules in the order of a hash table, another one each time.
#[test]
fn the_order_of_rules_does_not_matter() {
    let mut rules = vec![
        rule("", "groups", &["a", "b"]),
        rule("", "groups", &["c"]),
        rule("authentication.k8s.io", "userextras/scopes", &["a"]),
        rule("authentication.k8s.io", "userextras/scopes", &["b"]),
        rule("authentication.k8s.io", "userextras/reason", &[]),
    ];
    let one = told(&json!(rules)).expect("a review");
    rules.reverse();
    assert_eq!(one, told(&json!(rules)).expect("a review"));
    rules.pop();
    assert_ne!(one, told(&json!(rules)).expect("a review"));
}

#[test]
fn uids_and_extra_attributes_are_of_another_group() {
    let told = told(&json!([
        rule("authentication.k8s.io", "uids", &["7"]),
        rule("authentication.k8s.io", "userextras/scopes", &["a", "b"]),
        rule("authentication.k8s.io", "userextras/pandas.io/diet", &[]),
        rule("authentication.k8s.io", "*/reason", &[]),
        rule("authentication.k8s.io", "userextras", &[]),
        rule("", "uids", &[]),
    ]));
    let told = told.expect("a review");
    assert!(told.has_uid("7") && !told.has_uid("8"));
    assert!(told.has_extra("scopes", "a") && told.has_extra("scopes", "b") && !told.has_extra("scopes", "c"));
    assert!(told.has_extra("pandas.io/diet", "bamboo") && told.has_extra("reason", "why"));
    assert!(!told.has_extra("other", "x") && !told.has_extra("diet", "bamboo"));
    assert!(!told.has_group("g"));
    let everything = Impersonable::everything();
    assert!(everything.has_group("g") && everything.has_uid("7") && everything.has_extra("k", "v"));
}

#[test]
fn what_does_not_tell_is_not_taken_for_nothing() {
    let conditional =
        json!({"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["groups"]});
    assert_eq!(told(&json!([conditional])), Err(Untold::Conditions));
    let names: Vec<_> = (0..=MOST_NAMES).map(|number| number.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(told(&json!([rule("", "groups", &names)])), Err(Untold::TooMany));
    // One mebibyte of these would be gigabytes in memory.
    let many = |names: &[&str], resources: usize| {
        let mut rule = rule("authentication.k8s.io", "*", names);
        rule["resources"] = vec!["*/a"; resources].into();
        told(&json!([rule]))
    };
    assert_eq!(many(&names[..MOST_NAMES / 2], 3), Err(Untold::TooMany));
    assert_eq!(many(&[], MOST_NAMES + 1), Err(Untold::TooMany));
    assert!(many(&names[..MOST_NAMES / 2], 2).is_ok());
    for body in ["", "{}", "[]", r#"{"kind":"Status","status":"Failure"}"#, r#"{"kind":"SelfSubjectRulesReview"}"#] {
        assert_eq!(Impersonable::parse(body.as_bytes()), Err(Untold::Shape), "{body}");
    }
    let review = r#"{"kind":"SelfSubjectRulesReview","status":{"resourceRules":null,"incomplete":true}}"#;
    let told = Impersonable::parse(review.as_bytes()).expect("a review");
    assert!(!told.is_complete() && !told.has_group("g"));
}

#[test]
fn the_question_is_of_no_namespace_that_can_be() {
    let question: Value = serde_json::from_str(QUESTION).expect("JSON");
    let namespace = question["spec"]["namespace"].as_str().expect("a namespace, which is required");
    assert!(namespace.contains('.'), "a namespace's name is a DNS label");
}
