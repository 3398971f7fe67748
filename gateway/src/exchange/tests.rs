//! Tests of exchanged identities: the tables of the Go cluster-gateway (`TestExchangeIdentity`,
//! `TestGetImpersonationConfig`), and more cases around them.

use api::route::MemberRequest;
use http::Method;
use proptest::prelude::*;

use super::*;
use crate::holding;

const CLUSTER: &str = "c1";

fn user(name: &str, uid: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(ToString::to_string).collect();
    User { name: name.into(), uid: Some(uid.into()), groups, ..User::default() }
}

/// A configuration with these rules, in YAML's flow style.
fn spec(rules: &str) -> String {
    format!("spec: {{clientIdentityExchanger: {{rules: [{rules}]}}}}")
}

fn privileged(source: &str) -> String {
    format!("{{name: r, type: PrivilegedIdentityExchanger, source: {source}}}")
}

fn mapped(source: &str, to: &str) -> String {
    format!("{{name: r, type: StaticMappingIdentityExchanger, source: {source}, target: {{user: {to}}}}}")
}

fn rules(text: &str) -> Rules {
    configuration::of_operator(text).unwrap().0
}

fn exchange(gate: bool, global: &str) -> Exchange {
    let options = Options { gate, ..Options::default() };
    Exchange::new(&options, Arc::new(ArcSwap::from_pointee(rules(global))))
}

/// A member's `Impersonate-Group` lines take far more memory than short groups have letters.
#[test]
fn a_callers_identity_counts_what_its_headers_take() {
    const GROUPS: usize = 8000;
    let user = User { groups: vec!["g".to_owned(); GROUPS], ..user("alice", "", &[]) };
    for acting in [ActingAs::Caller(Arc::default()), ActingAs::FrontProxied] {
        let mut headers = HeaderMap::new();
        acting.apply(&user, &mut headers).unwrap();
        assert!(acting.copies_caller());
        let table = holding::size(&headers) - holding::lines(&headers);
        assert!(table > 70 * GROUPS);
        assert!((3 * table..8 * table).contains(&holding::identity(&user)), "{}", holding::identity(&user));
    }
    assert!(!ActingAs::Registered.copies_caller());
}

/// The user that the member sees; `None`: the registered credential itself.
fn seen(acting: &ActingAs, user: &User) -> Option<String> {
    let mut headers = HeaderMap::new();
    acting.apply(user, &mut headers).unwrap();
    headers.get("impersonate-user").map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn each_condition_matches_what_it_names_and_all_of_them_must() {
    let jane = user("jane", "u-1", &["dev", "team-blue"]);
    for (source, matches) in [
        ("{}", true),
        ("{user: jane}", true),
        ("{user: jan}", false),
        ("{user: ''}", false),
        ("{group: team-blue}", true),
        ("{group: team}", false),
        ("{uid: u-1}", true),
        ("{uid: ''}", false),
        ("{cluster: c1}", true),
        ("{cluster: c2}", false),
        ("{userPattern: an}", true),
        ("{userPattern: ^an}", false),
        ("{groupPattern: ^team-}", true),
        ("{groupPattern: ^blue}", false),
        ("{clusterPattern: '^c[0-9]$'}", true),
        ("{clusterPattern: ^d}", false),
        ("{user: jane, group: dev, uid: u-1, cluster: c1, userPattern: j, groupPattern: d, clusterPattern: c}", true),
        ("{user: jane, group: dev, uid: u-1, cluster: c1, userPattern: j, groupPattern: d, clusterPattern: d}", false),
        ("{user: jane, group: ops}", false),
        ("null", false),
    ] {
        assert_eq!(rules(&spec(&privileged(source))).find(&jane, CLUSTER).is_some(), matches, "{source}");
    }
    let nobody = user("jane", "", &[]);
    assert!(rules(&spec(&privileged("{groupPattern: ''}"))).find(&nobody, CLUSTER).is_none(), "no group, no match");
    assert!(rules(&spec(&privileged("{uid: ''}"))).find(&nobody, CLUSTER).is_some());
}

#[test]
fn the_cluster_is_asked_before_the_operator_and_the_first_match_wins() {
    let exchange = exchange(true, &spec(&[mapped("{user: jane}", "global"), privileged("{group: ops}")].join(", ")));
    let annotations = Annotations { read: true, privileged: false };
    let text = spec(&[mapped("{userPattern: ^j, group: dev}", "first"), mapped("{user: jane}", "second")].join(", "));
    let own = annotations.compile(CLUSTER, Some(&text));
    for (jane, expected) in [
        (user("jane", "", &["dev"]), Some("first")),
        (user("jane", "", &["ops"]), Some("second")),
        (user("joe", "", &["ops"]), None),
        (user("joe", "", &["qa"]), Some("joe")),
    ] {
        let acting = exchange.acting(CLUSTER, &own, &jane, false).unwrap();
        assert_eq!(seen(&acting, &jane).as_deref(), expected, "{jane:?}");
    }
    let jane = user("jane", "", &[]);
    let acting = exchange.acting(CLUSTER, &OwnRules::None, &jane, false).unwrap();
    assert_eq!(seen(&acting, &jane).as_deref(), Some("global"));
}

#[test]
fn without_the_gate_only_requests_that_ask_are_exchanged() {
    let exchange = exchange(false, &spec(&mapped("{user: jane}", "somebody")));
    let (jane, joe) = (user("jane", "", &[]), user("joe", "", &[]));
    let asks = |query| MemberRequest::read(&Method::GET, "/api", query, false).impersonates();
    let acting = |user: &User, query| exchange.acting(CLUSTER, &OwnRules::None, user, asks(query)).unwrap();
    for query in
        [None, Some(""), Some("impersonate=True"), Some("impersonate=1"), Some("impersonate=false&impersonate=true")]
    {
        assert_eq!(seen(&acting(&jane, query), &jane), None, "{query:?}");
    }
    assert_eq!(seen(&acting(&jane, Some("a=b&impersonate=true")), &jane).as_deref(), Some("somebody"));
    assert_eq!(seen(&acting(&joe, Some("impersonate=tru%65")), &joe).as_deref(), Some("joe"));
    // Annotations are not read then, either.
    assert!(matches!(Annotations::default().compile(CLUSTER, Some("nonsense: [")), OwnRules::None));
}

#[test]
fn an_annotation_speaks_of_its_own_cluster_alone() {
    let annotations = Annotations { read: true, privileged: false };
    let OwnRules::Valid(own) = annotations.compile(CLUSTER, Some(&spec(&mapped("{cluster: other}", "x")))) else {
        panic!("the annotation is valid");
    };
    let jane = user("jane", "", &[]);
    assert!(own.find(&jane, CLUSTER).is_some() && own.find(&jane, "other").is_none());
    let compiled = annotations.compile(CLUSTER, Some(&spec(&mapped("null", "x"))));
    assert!(matches!(compiled, OwnRules::Valid(own) if own.len() == 0), "without a source nobody is meant");
}

#[test]
fn privileged_annotations_count_only_if_allowed() {
    let jane = user("jane", "", &[]);
    let text = spec(&[privileged("{}"), mapped("{}", "x")].join(", "));
    for (allowed, expected) in [(false, Some("x")), (true, None)] {
        let own = Annotations { read: true, privileged: allowed }.compile(CLUSTER, Some(&text));
        let acting = exchange(true, "spec: {}").acting(CLUSTER, &own, &jane, false).unwrap();
        assert_eq!(seen(&acting, &jane).as_deref(), expected, "allowed: {allowed}");
    }
    // An invalid rule is an error even if it would be ignored.
    let own = Annotations { read: true, privileged: false };
    let own = own.compile(CLUSTER, Some(&spec(&privileged("{userPattern: '('}"))));
    assert!(matches!(own, OwnRules::Invalid(_)));
}

#[test]
fn annotations_make_nobody_one_of_the_system_unless_allowed() {
    let jane = user("jane", "", &[]);
    let target = |target: &str| {
        let rule = format!("{{name: up, type: StaticMappingIdentityExchanger, source: {{}}, target: {{{target}}}}}");
        spec(&[rule, mapped("{}", "x")].join(", "))
    };
    for (text, allowed, expected) in [
        ("user: y, groups: ['system:masters']", false, "x"),
        ("user: y, groups: [dev, 'system:nodes']", false, "x"),
        ("user: 'system:kube-scheduler'", false, "x"),
        ("user: y, groups: [dev, 'the-system:x']", false, "y"),
        ("user: y, groups: ['system:masters']", true, "y"),
    ] {
        let own = Annotations { read: true, privileged: allowed }.compile(CLUSTER, Some(&target(text)));
        let acting = exchange(true, "spec: {}").acting(CLUSTER, &own, &jane, false).unwrap();
        assert_eq!(seen(&acting, &jane).as_deref(), Some(expected), "{text}, allowed: {allowed}");
    }
    // The operator's file may map to such groups.
    let global = exchange(true, &target("user: y, groups: ['system:masters']"));
    let acting = global.acting(CLUSTER, &OwnRules::None, &jane, false).unwrap();
    assert_eq!(seen(&acting, &jane).as_deref(), Some("y"));
}

#[test]
fn what_an_annotation_may_not_say_is_told() {
    let rule =
        "{name: up, type: StaticMappingIdentityExchanger, source: {}, target: {user: y, groups: ['system:masters']}}";
    let text = spec(&[rule, &privileged("{}")].join(", "));
    let (rules, remarks) = configuration::of_cluster(&text, CLUSTER, false).unwrap();
    assert_eq!((rules.len(), remarks.len()), (0, 2));
    for (remark, rule) in remarks.iter().zip(["rule 1 (\"up\")", "rule 2 (\"r\")"]) {
        assert!(remark.contains(rule) && remark.contains("--allow-privileged-annotations"), "{remark}");
    }
    assert!(configuration::of_cluster(&text, CLUSTER, true).unwrap().1.is_empty());
}

#[test]
fn a_wrong_annotation_lets_nobody_through() {
    let own =
        Annotations { read: true, privileged: false }.compile(CLUSTER, Some(&spec(&mapped("{userPattern: '('}", "x"))));
    let reason = exchange(true, "spec: {}").acting(CLUSTER, &own, &user("jane", "", &[]), false).unwrap_err();
    for part in [IDENTITY_RULES_ANNOTATION, "rule 1 (\"r\")", "userPattern"] {
        assert!(reason.contains(part), "{part} missing in: {reason}");
    }
}

/// One condition on names of a few letters, and what it means.
#[derive(Debug, Clone)]
enum Condition {
    User(String),
    Group(String),
    Cluster(String),
    UserBegins(String),
    GroupEnds(String),
}

impl Condition {
    fn written(&self) -> String {
        match self {
            Self::User(text) => format!("\"user\": {text:?}"),
            Self::Group(text) => format!("\"group\": {text:?}"),
            Self::Cluster(text) => format!("\"cluster\": {text:?}"),
            Self::UserBegins(text) => format!("\"userPattern\": \"^{text}\""),
            Self::GroupEnds(text) => format!("\"groupPattern\": \"{text}$\""),
        }
    }

    fn holds(&self, user: &User, cluster: &str) -> bool {
        match self {
            Self::User(text) => user.name == *text,
            Self::Group(text) => user.groups.contains(text),
            Self::Cluster(text) => cluster == text,
            Self::UserBegins(text) => user.name.starts_with(text),
            Self::GroupEnds(text) => user.groups.iter().any(|group| group.ends_with(text)),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let name = "[ab]{1,2}";
    prop_oneof![
        name.prop_map(Condition::User),
        name.prop_map(Condition::Group),
        name.prop_map(Condition::Cluster),
        name.prop_map(Condition::UserBegins),
        name.prop_map(Condition::GroupEnds),
    ]
}

proptest! {
    #[test]
    fn the_first_rule_of_which_all_conditions_hold_decides(
        sources in prop::collection::vec(prop::collection::vec(condition(), 0..3), 0..5),
        name in "[ab]{1,2}",
        groups in prop::collection::vec("[ab]{1,2}", 0..3),
        cluster in "[ab]{1,2}",
    ) {
        // Two conditions of one kind would repeat a key.
        let sources: Vec<Vec<Condition>> = sources.into_iter().map(|mut source| {
            let mut kinds = std::collections::HashSet::new();
            source.retain(|condition| kinds.insert(std::mem::discriminant(condition)));
            source
        }).collect();
        let written: Vec<_> = sources.iter().enumerate().map(|(number, source)| {
            let source: Vec<_> = source.iter().map(Condition::written).collect();
            format!(
                r#"{{"type": "StaticMappingIdentityExchanger", "source": {{{}}}, "target": {{"user": "{number}"}}}}"#,
                source.join(", ")
            )
        }).collect();
        let json = format!(r#"{{"spec": {{"clientIdentityExchanger": {{"rules": [{}]}}}}}}"#, written.join(", "));
        let caller = User { name: format!("~{name}"), groups, ..User::default() };
        let caller = User { name, ..caller };
        let expected = sources.iter().position(|source| source.iter().all(|one| one.holds(&caller, &cluster)));
        let rules = rules(&json);
        let found = rules.find(&caller, &cluster).and_then(|outcome| seen(&outcome.into(), &caller));
        prop_assert_eq!(found, expected.map(|number| number.to_string()));
    }
}
