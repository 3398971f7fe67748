//! Any identity rules in a Secret: about their own cluster alone, no user or group of the system,
//! never the registered credential, and a refusal in one short line.
//!
//! Input: the annotation.

use auth::User;

pub const WORDS: &[&str] = &[
    "spec:\n",
    "  clientIdentityExchanger:\n",
    "    rules:\n",
    "    - ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "source: {}",
    "source: ",
    "type: StaticMappingIdentityExchanger",
    "type: PrivilegedIdentityExchanger",
    "target: {user: x}",
    "groups: [",
    "'system:masters'",
    "system:",
    "user: ",
    "group: dev",
    "uid: ",
    "cluster: other",
    "userPattern: ^j",
    "(?i)",
    "\\d+",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    "\"",
    "'",
    "\n",
    "#",
    "!!str ",
    "null",
    "~",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let groups = vec!["dev".to_owned(), "system:authenticated".to_owned()];
    let jane = User { name: "jane".into(), groups, ..User::default() };
    match gateway::edges::annotated(text, "c1", &jane, "c1") {
        Err(why) => assert!(!why.contains(char::is_control) && why.chars().count() < 1000, "{why:?}"),
        Ok(None) => {}
        Ok(Some(headers)) => {
            // Without it a member takes the request for one of the registered credential itself.
            assert!(headers.get("impersonate-user").is_some_and(|name| !name.is_empty()), "{headers:?}");
            let reserved = headers.values().find(|value| value.as_bytes().starts_with(b"system:"));
            assert_eq!(reserved, None);
            assert!(headers.keys().all(|name| name.as_str().starts_with("impersonate-")));
        }
    }
    let elsewhere = gateway::edges::annotated(text, "c1", &jane, "c2");
    assert!(!matches!(elsewhere, Ok(Some(_))), "another cluster's rules");
}
