//! A method whose name asks changes nothing.

use std::fs;
use std::path::Path;

use structure_tests::questions::{Loaded, changing, loaded};
use structure_tests::widths::files;
use structure_tests::workspace;

/// Functions of the product that ask with `&mut`: file, name, why that changes nothing.
const EXCEPTIONS: [(&str, &str, &str); 5] = [
    ("crates/placement/src/cel/library/lists.rs", "is_sorted", "a function of CEL; a run counts its cost"),
    ("crates/placement/src/cel/library/ocm.rs", "has_conditions", "a function of CEL; a run counts its cost"),
    ("gateway/src/proxy.rs", "is_disbelieved", "a body that is peeked at stays whole"),
    ("gateway/src/proxy/workload.rs", "is_anonymous_refusal", "a body that is peeked at stays whole"),
    ("gateway/src/proxy/workload.rs", "is_of_the_member", "a body that is peeked at stays whole"),
];

/// File and function of all that `wrong` finds in the workspace's sources.
fn found(wrong: fn(&str) -> Vec<Loaded>, counts: impl Fn(&Path) -> bool) -> Vec<(String, Loaded)> {
    let root = workspace();
    let mut found = Vec::new();
    for file in files(&root, &["rs"]) {
        let name = file.strip_prefix(&root).unwrap_or(&file);
        if counts(name) {
            let text = fs::read_to_string(&file).expect("text");
            found.extend(wrong(&text).into_iter().map(|loaded| (name.display().to_string(), loaded)));
        }
    }
    found
}

fn none(found: &[(String, Loaded)]) {
    let lines: Vec<_> = found.iter().map(|(file, loaded)| format!("{file}:{}: {}", loaded.line, loaded.name)).collect();
    assert!(lines.is_empty(), "these ask and change something: name them by what they do\n\n{}\n", lines.join("\n"));
}

#[test]
fn no_question_changes_its_subject() {
    none(&found(loaded, |_| true));
}

#[test]
fn no_question_of_the_product_changes_anything() {
    let is_product = |file: &Path| {
        file.components().all(|part| !["tests", "tests.rs"].iter().any(|tests| part.as_os_str() == *tests))
    };
    let (excepted, wrong): (Vec<_>, Vec<_>) = found(changing, is_product).into_iter().partition(|(file, loaded)| {
        EXCEPTIONS.iter().any(|(excepted, name, _)| excepted == file && *name == loaded.name)
    });
    none(&wrong);
    assert_eq!(excepted.len(), EXCEPTIONS.len(), "an exception that nothing needs: {excepted:?}");
}
