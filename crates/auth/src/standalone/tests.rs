//! Tests of what a rule grants, what it does not, and which files are refused.

use std::borrow::Cow;

use api::access::ResourceAttributes;

use super::*;
use crate::testing::user;

const POLICY: &[u8] = b"
rules:
- users: [alice]
  clusters: [blue, green.example]
  verbs: [get, create]
- groups: [operators]
  clusters: ['*']
  verbs: ['*']
";

fn attributes(resource: &'static str, subresource: &'static str, verb: Verb, name: Option<&str>) -> ResourceAttributes {
    ResourceAttributes {
        verb,
        group: Cow::Borrowed(api::GROUP),
        version: Cow::Borrowed(api::VERSION),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: None,
        name: name.map(Arc::from),
        field_selector: None,
        label_selector: None,
    }
}

fn allows(user: &User, attributes: ResourceAttributes) -> bool {
    let standalone = Standalone::new(Policy::parse(POLICY).expect("valid"));
    standalone.decide(user, &Attributes::Resource(attributes)) == Decision::Allowed
}

#[test]
fn a_rule_grants_its_verbs_on_its_clusters() {
    let alice = user("alice", &["system:authenticated"]);
    let operator = user("olga", &["operators"]);
    for (verb, cluster, by_alice) in [
        (Verb::Get, "blue", true),
        (Verb::Create, "green.example", true),
        (Verb::Delete, "blue", false),
        (Verb::None, "blue", false),
        (Verb::Get, "red", false),
    ] {
        let wanted = attributes(CLUSTERS, "proxy", verb, Some(cluster));
        assert_eq!(allows(&alice, wanted.clone()), by_alice, "{verb:?} {cluster}");
        assert!(allows(&operator, wanted.clone()), "{verb:?} {cluster}");
        assert!(!allows(&user("bob", &["alice"]), wanted), "{verb:?} {cluster}");
    }
}

#[test]
fn who_may_use_a_cluster_may_read_it_and_who_may_use_all_may_list() {
    let alice = user("alice", &[]);
    let operator = user("olga", &["operators"]);
    for (resource, subresource, verb, name, by_alice, by_operator) in [
        (CLUSTERS, "", Verb::Get, Some("blue"), true, true),
        (CLUSTERS, "", Verb::List, Some("blue"), true, true),
        (CLUSTERS, "health", Verb::Get, Some("blue"), true, true),
        (VIRTUAL_CLUSTERS, "", Verb::Get, Some("blue"), true, true),
        (CLUSTERS, "", Verb::Get, Some("red"), false, true),
        (CLUSTERS, "", Verb::List, None, false, true),
        (VIRTUAL_CLUSTERS, "", Verb::Watch, None, false, true),
        (CLUSTERS, "", Verb::Create, None, false, false),
        (CLUSTERS, "", Verb::Delete, Some("blue"), false, false),
        (CLUSTERS, "health", Verb::Update, Some("blue"), false, false),
        ("users", "", Verb::Impersonate, Some("blue"), false, false),
    ] {
        let wanted = attributes(resource, subresource, verb, name);
        assert_eq!(allows(&alice, wanted.clone()), by_alice, "{wanted:?}");
        assert_eq!(allows(&operator, wanted.clone()), by_operator, "{wanted:?}");
    }
    let other_group = ResourceAttributes { group: "".into(), ..attributes(CLUSTERS, "proxy", Verb::Get, Some("blue")) };
    assert!(!allows(&operator, other_group));
    let namespaced =
        ResourceAttributes { namespace: Some("n".into()), ..attributes(CLUSTERS, "proxy", Verb::Get, Some("blue")) };
    assert!(!allows(&operator, namespaced));
}

#[test]
fn discovery_is_open_to_the_authenticated() {
    let nobody = Standalone::new(Policy::default());
    let decide = |user: &User, path: &str, verb: &'static str| {
        let attributes = Attributes::NonResource { path: path.into(), verb: verb.into() };
        nobody.decide(user, &attributes) == Decision::Allowed
    };
    let known = user("u", &["system:authenticated"]);
    for path in ["/apis", "/apis/cluster.core.oam.dev/v1alpha1", "/openapi/v3", "/version", "/api"] {
        assert!(decide(&known, path, "get"), "{path}");
        assert!(!decide(&User::anonymous(), path, "get"), "{path}");
        assert!(!decide(&known, path, "post"), "{path}");
    }
    for path in ["/metrics", "/apisx", "/", "/debug/links"] {
        assert!(!decide(&known, path, "get"), "{path}");
    }
}

#[test]
fn a_file_with_a_mistake_is_refused_and_says_where() {
    for (yaml, complaint) in [
        ("rules: [{users: [a], clusters: [c], verbs: [list]}]", "rule 1: verb \"list\""),
        ("rules: [{users: [a], clusters: [c], verbs: [get]}, {clusters: [c], verbs: [get]}]", "rule 2: needs users"),
        ("rules: [{users: [a], clusters: [], verbs: [get]}]", "rule 1: needs clusters"),
        ("rules: [{users: [a], clusters: [Not_A_Name], verbs: [get]}]", "rule 1: cluster \"Not_A_Name\""),
        ("rules: [{users: [a], clusters: [c], verbs: [get], cluster: c}]", "unknown field"),
        ("rule: []", "unknown field"),
        ("rules: [", "not valid YAML"),
    ] {
        let error = Policy::parse(yaml.as_bytes()).expect_err(yaml).to_string();
        assert!(error.contains(complaint), "{yaml}: {error}");
    }
}

#[test]
fn proxied_requests_are_decided_by_cluster_and_kind_of_verb() {
    let standalone = Standalone::new(Policy::parse(POLICY).expect("valid"));
    let alice = user("alice", &[]);
    let decides = |cluster: &str, attributes: &Attributes| standalone.decide_proxied(&alice, cluster, attributes);
    let pods =
        |verb| Attributes::Resource(ResourceAttributes { group: "".into(), ..attributes("pods", "", verb, None) });
    for (verb, allowed) in [
        (Verb::List, true),
        (Verb::Watch, true),
        (Verb::Create, true),
        (Verb::Delete, false),
        (Verb::DeleteCollection, false),
        (Verb::None, false),
    ] {
        assert_eq!(decides("blue", &pods(verb)) == Decision::Allowed, allowed, "{verb:?}");
        assert_ne!(decides("red", &pods(verb)), Decision::Allowed, "{verb:?}");
    }
    for (verb, allowed) in [("head", true), ("post", true), ("put", false), ("options", false)] {
        let path = Attributes::NonResource { path: "/metrics".into(), verb: verb.into() };
        assert_eq!(decides("blue", &path) == Decision::Allowed, allowed, "{verb}");
    }
}
