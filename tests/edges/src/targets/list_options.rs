//! Any query of a list or a watch: options or a refusal, and a selector for one name never selects
//! another.
//!
//! Input: a query string.

use api::list_options::{ListOptions, WatchOptions};
use api::selector::field::FieldSelector;
use api::selector::label::LabelSelector;
use api::status::Status;

pub const WORDS: &[&str] = &[
    "watch=1",
    "&",
    "=",
    "limit=5",
    "continue=",
    "resourceVersion=0",
    "resourceVersionMatch=Exact",
    "fieldSelector=",
    "labelSelector=",
    "metadata.name",
    "%3D",
    "%2C",
    "!=",
    " in (a)",
    "sendInitialEvents=true",
    "allowWatchBookmarks=1",
    "timeoutSeconds=9",
    "\\",
    ";",
    "c1",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match ListOptions::from_query(Some(text)) {
        // The options passed on to the hub parse to the same.
        Ok(options) => {
            let again = ListOptions::from_query(Some(&options.to_hub("", true))).expect("accepted before");
            assert!(again.selectors.matches_name("c1") || !options.selectors.matches_name("c1"));
        }
        Err(error) => assert!(Status::from(error).code().is_client_error()),
    }
    if let Err(error) = WatchOptions::from_query(Some(text)) {
        assert!(Status::from(error).code().is_client_error());
    }
    let _ = LabelSelector::parse(text);
    if let Ok(selector) = FieldSelector::parse(text) {
        let value = |field: &str| if field == "metadata.name" { "c1" } else { "" };
        if let Some(name) = selector.exact("metadata.name") {
            assert!(name == "c1" || !selector.matches(value));
        }
    }
}
