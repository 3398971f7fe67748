//! Any answer of a member about the identities that its credential may impersonate: rights or a
//! refusal, and an identity that no rule names is allowed only where all are.
//!
//! Input: the body.

use api::impersonable::Impersonable;

pub const WORDS: &[&str] = &[
    r#"{"kind":"SelfSubjectRulesReview","status":{"resourceRules":["#,
    r#"{"verbs":["impersonate"],"apiGroups":[""],"resources":["#,
    r#"],"resourceNames":["a"]}"#,
    r#""groups""#,
    r#""users""#,
    r#""uids""#,
    r#""userextras/scopes""#,
    r#""*""#,
    r#""authentication.k8s.io""#,
    r#""impersonate""#,
    r#""incomplete":true"#,
    "[]",
    "{}",
    "null",
    ",",
    "]}}",
    "]",
    "}",
];

/// Names that no input is made of.
const OTHERS: [&str; 2] = ["zz-one", "zz-other"];

pub fn check(input: &[u8]) {
    let Ok(rights) = Impersonable::parse(input) else { return };
    if OTHERS.iter().any(|name| input.windows(name.len()).any(|part| part == name.as_bytes())) {
        return;
    }
    let [one, other] = OTHERS;
    assert_eq!(rights.has_group(one), rights.has_group(other));
    assert_eq!(rights.has_uid(one), rights.has_uid(other));
    assert_eq!(rights.has_extra("scopes", one), rights.has_extra("scopes", other));
    let everything = Impersonable::everything();
    assert!(everything.has_group(one) && everything.has_uid(one) && everything.has_extra("scopes", one));
}
