use std::collections::BTreeMap;

use super::*;

/// What is withheld by default.
const HUBS_OWN: &str = "authentication.kubernetes.io/*";

fn user(name: &str, groups: &[&str], extra: &[(&str, &[&str])]) -> User {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    User {
        name: name.into(),
        uid: Some("u-1".into()),
        groups: texts(groups),
        extra: extra.iter().map(|(key, values)| ((*key).to_owned(), texts(values))).collect::<BTreeMap<_, _>>(),
    }
}

fn passed(disclosure: &Disclosure, user: &User) -> Result<Vec<(String, String)>, NotAHeader> {
    let mut headers = HeaderMap::new();
    disclosure.apply(user, None, &mut headers)?;
    Ok(lines(&headers))
}

fn lines(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn line(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn an_identity_is_one_line_per_group_and_value() {
    let jane = user("jörg", &["dev", "ops"], &[("example.org/Team=x", &["a", "b"])]);
    let expected = [
        line("impersonate-user", "jörg"),
        line("impersonate-group", "dev"),
        line("impersonate-group", "ops"),
        line("impersonate-uid", "u-1"),
        line("impersonate-extra-example.org%2fteam%3dx", "a"),
        line("impersonate-extra-example.org%2fteam%3dx", "b"),
    ];
    assert_eq!(passed(&Disclosure::new(true, &[]), &jane).unwrap(), expected);
}

#[test]
fn what_is_not_there_has_no_empty_line() {
    let mut jane = user("jane", &["", "dev"], &[]);
    jane.uid = Some(String::new());
    let expected = [line("impersonate-user", "jane"), line("impersonate-group", "dev")];
    assert_eq!(passed(&Disclosure::new(true, &[]), &jane).unwrap(), expected);
    assert_eq!(passed(&Disclosure::new(false, &[]), &user("jane", &[], &[])).unwrap().len(), 1, "uids can be withheld");
}

#[test]
fn within_what_may_be_said_nothing_else_is() {
    let groups = ["dev", "ops", "system:authenticated"];
    let jane = user("jane", &groups, &[("Authentication.kubernetes.io/node-name", &["a", "b"])]);
    let passed = |rules: &str| {
        let review = format!(r#"{{"kind":"SelfSubjectRulesReview","status":{{"resourceRules":[{rules}]}}}}"#);
        let within = Within(Arc::new(Impersonable::parse(review.as_bytes()).unwrap()));
        let mut headers = HeaderMap::new();
        Disclosure::new(true, &[]).apply(&jane, Some(&within), &mut headers).unwrap();
        lines(&headers).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let rule = |group: &str, resource: &str, name: &str| {
        let of = format!(r#""apiGroups":["{group}"],"resources":["{resource}"],"resourceNames":["{name}"]"#);
        format!(r#"{{"verbs":["impersonate"],{of}}}"#)
    };
    assert_eq!(passed(""), ["jane"]);
    assert_eq!(passed(&rule("", "groups", "ops")), ["jane", "ops"]);
    assert_eq!(passed(&rule("authentication.k8s.io", "uids", "u-1")), ["jane", "u-1"]);
    assert_eq!(
        passed(&rule("authentication.k8s.io", "userextras/authentication.kubernetes.io/node-name", "b")),
        ["jane", "b"]
    );
    // What a member says by itself is never claimed.
    let all = r#"{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}"#;
    assert_eq!(passed(all), ["jane", "dev", "ops", "u-1", "a", "b"]);
}

#[test]
fn extra_keys_are_withheld_by_name_and_by_prefix() {
    let bot =
        user("bot", &[], &[("authentication.kubernetes.io/pod-name", &["p"]), ("scopes", &["s"]), ("scopes2", &["t"])]);
    let keys = |withheld: &[&str]| {
        let withheld: Vec<_> = withheld.iter().map(ToString::to_string).collect();
        let lines = passed(&Disclosure::new(false, &withheld), &bot).unwrap();
        lines.into_iter().skip(1).map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[HUBS_OWN]), ["s", "t"]);
    assert_eq!(keys(&[HUBS_OWN, " Scopes "]), ["t"]);
    assert_eq!(keys(&["scopes*", ""]), ["p"]);
    assert!(keys(&["*"]).is_empty());
    // On the member it is the same key.
    let shouting = user("bot", &[], &[("Scopes", &["s"])]);
    let withheld = ["scopes".to_owned()];
    assert_eq!(passed(&Disclosure::new(false, &withheld), &shouting).unwrap().len(), 1, "the name alone");
}

#[test]
fn names_that_would_arrive_as_others_are_refused() {
    let disclosure = Disclosure::new(true, &[]);
    for name in ["", "a\nb", "a\0", " a", "a ", "a\t"] {
        assert_eq!(passed(&disclosure, &user(name, &[], &[])), Err(NotAHeader), "{name:?}");
    }
    assert_eq!(passed(&disclosure, &user("a", &["g", " g"], &[])), Err(NotAHeader));
    assert_eq!(passed(&disclosure, &user("a", &[], &[("k", &["v "])])), Err(NotAHeader));
    assert!(passed(&disclosure, &user("a", &[], &[("k", &[""])])).is_ok());
}

#[test]
fn a_mapping_names_the_field_that_cannot_be_sent() {
    let groups = ["g".to_owned(), "h".to_owned()];
    let mut headers = HeaderMap::new();
    Impersonation::new("u", &groups, Some("1")).unwrap().apply(&mut headers);
    let expected = [
        line("impersonate-user", "u"),
        line("impersonate-group", "g"),
        line("impersonate-group", "h"),
        line("impersonate-uid", "1"),
    ];
    assert_eq!(lines(&headers), expected);
    assert_eq!(Impersonation::new("", &groups, None), Err("user"));
    assert_eq!(Impersonation::new("u", &[String::new()], None), Err("groups"));
    assert_eq!(Impersonation::new("u", &[], Some("a\r")), Err("uid"));
}

#[test]
fn what_may_restrict_is_not_left_out() {
    let nothing =
        || Within(Arc::new(Impersonable::parse(br#"{"kind":"SelfSubjectRulesReview","status":{}}"#).unwrap()));
    let passed = |user: &User| {
        let mut headers = HeaderMap::new();
        Disclosure::new(false, &[]).apply(user, Some(&nothing()), &mut headers).unwrap();
        lines(&headers).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let scoped = user("jane", &[], &[("scopes.authorization.openshift.io", &["user:info"])]);
    assert_eq!(passed(&scoped), ["jane", "user:info"], "the member refuses, or restricts");
    // Else the member would take them for authenticated.
    assert_eq!(passed(&user("jane", &["system:unauthenticated"], &[])), ["jane", "system:unauthenticated"]);
    assert_eq!(passed(&user("system:anonymous", &["system:unauthenticated"], &[])), ["system:anonymous"]);
}

#[test]
fn an_identity_can_be_taken_back_as_a_whole() {
    let mut headers = HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static("a"))]);
    let jane = user("jane", &["dev", "ops"], &[("example.org/Team=x", &["a", "b"])]);
    Disclosure::new(true, &[]).apply(&jane, None, &mut headers).unwrap();
    clear(&mut headers);
    assert_eq!(lines(&headers), [line("accept", "a")]);
}

fn remote(user: &User) -> Result<Vec<String>, NotAHeader> {
    let mut headers = HeaderMap::new();
    front_proxied(user, &mut headers)?;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect())
}

#[test]
fn everything_is_written_as_the_aggregator_does() {
    let user = User {
        name: "jürgen".to_owned(),
        uid: Some("7".to_owned()),
        groups: vec!["devs".to_owned(), String::new(), "system:authenticated".to_owned()],
        extra: [("example.org/a b".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into(),
    };
    let expected = [
        "x-remote-user: jürgen",
        "x-remote-group: devs",
        "x-remote-group: system:authenticated",
        "x-remote-uid: 7",
        "x-remote-extra-example.org%2fa%20b: x",
        "x-remote-extra-example.org%2fa%20b: y",
    ];
    assert_eq!(remote(&user).unwrap(), expected);
}

#[test]
fn what_would_arrive_as_somebody_else_is_not_sent() {
    let named = |name: &str| User { name: name.to_owned(), ..User::default() };
    let grouped = |group: &str| User { groups: vec![group.to_owned()], ..named("a") };
    for user in [named(""), named(" a"), named("a\n"), grouped("b "), grouped("\0")] {
        assert_eq!(remote(&user), Err(NotAHeader), "{user:?}");
    }
}
