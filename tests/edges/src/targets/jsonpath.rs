//! Any `JSONPath`: refused, or followed within its bounds; its reported result is short.

use delivery::feedback::{self, Named, RAW, Rule, Value};
use delivery::json_path::{JsonPath, TEXT, VISITS};
use serde_json::{Value as Json, json};

pub const WORDS: &[&str] = &[
    ".status",
    ".conditions",
    "[?(@.type==\"Ready\")]",
    "[?(@.n>=1)]",
    "[?(",
    ")]",
    "@",
    "$",
    "..",
    "*",
    "[*]",
    "[0]",
    "[-1]",
    "[0:2]",
    "[::2]",
    "[0,1]",
    "['type','status']",
    r"['a\.b']",
    r"\.",
    "'",
    "\"",
    "==",
    "!=",
    "<",
    "true",
    "1.5",
    "é",
    "{",
    "}",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": {"a.b": "c"}},
        "status": {"n": 3, "f": 1.5, "on": true, "none": null, "list": [[1, 2], [3, [4, "x"]]],
            "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}]}});
    let read = JsonPath::read(text);
    if let Ok(path) = &read {
        assert!(text.len() <= TEXT);
        if let Ok(found) = path.find(&object) {
            assert!(found.len() <= VISITS);
        }
    }
    let named = Named { name: "v".to_owned(), version: String::new(), path: text.to_owned() };
    let told = feedback::read(&object, &[Rule::Paths(vec![named])], Some(RAW));
    assert!(told.values.len() + told.errors.len() <= 1);
    assert!(read.is_ok() || told.errors.len() == 1);
    if let Some((_, Value::JsonRaw(raw))) = told.values.first() {
        assert!(raw.len() <= RAW);
        assert!(serde_json::from_str::<Json>(raw).is_ok(), "{raw}");
    }
}
