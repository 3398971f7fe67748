//! Every reason of a condition that delivery and placement report is on their page.

use std::fs;

use structure_tests::reasons::reasons;
use structure_tests::workspace;

const PAGE: &str = "docs/delivery.md";
/// Sources of these reasons, and the least number in each.
const SOURCES: [(&str, usize); 6] = [
    ("crates/delivery/src/rules.rs", 4),
    ("crates/delivery/src/work/aggregate.rs", 5),
    ("crates/delivery/src/work/conditions.rs", 13),
    ("crates/delivery/src/work/replica_set/status.rs", 10),
    ("crates/placement/src/conditions.rs", 8),
    ("crates/register/src/ocm/availability/ownership.rs", 3),
];
/// A prefix of several reasons, and a status.
const NO_REASONS: [&str; 2] = ["ConditionRule", "Unknown"];

#[test]
fn every_reason_is_on_the_page() {
    let root = workspace();
    let page = fs::read_to_string(root.join(PAGE)).expect("a page");
    let mut missing = Vec::new();
    for (source, least) in SOURCES {
        let text = fs::read_to_string(root.join(source)).expect("a source");
        let found = reasons(&text);
        assert!(found.len() >= least, "{source}: only {found:?}");
        let is_missing = |word: &&&str| !NO_REASONS.contains(*word) && !page.contains(&format!("`{word}`"));
        missing.extend(found.iter().filter(is_missing).map(|word| format!("{source}: `{word}` is not in {PAGE}")));
    }
    assert!(missing.is_empty(), "\n\n{}\n", missing.join("\n"));
}
