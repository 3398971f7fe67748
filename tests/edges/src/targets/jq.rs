//! Any expression of jq: it is refused, or its target is taken away, and nothing is put there.

use delivery::jq;
use serde_json::{Value as Json, json};

pub const WORDS: &[&str] = &[
    ".spec",
    ".containers",
    ".list",
    "[]",
    "[0]",
    "[-1]",
    "[\"name\"]",
    ".\"a.b\"",
    "..",
    ".",
    "?",
    ",",
    " | ",
    "(",
    ")",
    "select(",
    ".name == \"x\"",
    " > 1",
    " and ",
    " or ",
    " | not",
    "startswith(\"x\")",
    "endswith(\"\")",
    "has(0)",
    "type",
    "length",
    "true",
    "null",
    "1e3",
    "\"\\u00e9\"",
    "é",
    "def f: f; f",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let before = json!({"kind": "X", "spec": {"a.b": 1, "list": [1, [2, 3], {"n": null}],
        "containers": [{"name": "x", "on": true}, {"name": "y", "env": [{"name": "z"}]}]}});
    let mut after = before.clone();
    let done = jq::delete(&mut after, text);
    assert!(after.is_object());
    assert!(size(&after) <= size(&before));
    match jq::check(text) {
        Ok(()) => assert!(done.is_ok() || after == before),
        Err(why) => assert_eq!((done, after), (Err(why), before)),
    }
}

/// Values in a value.
fn size(value: &Json) -> usize {
    match value {
        Json::Array(values) => 1 + values.iter().map(size).sum::<usize>(),
        Json::Object(entries) => 1 + entries.values().map(size).sum::<usize>(),
        _ => 1,
    }
}
