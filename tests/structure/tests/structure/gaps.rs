//! The programs' messages have no gaps.

use std::fs;

use structure_tests::gaps::gaps;
use structure_tests::{product, workspace};

#[test]
fn no_text_of_a_program_has_a_gap_in_a_line() {
    let root = workspace();
    let files = product::files(&root);
    assert!(files.len() > 500, "{} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(root.join(&file)).expect("text");
        wrong.extend(gaps(&text).iter().map(|line| format!("{}:{line}", file.display())));
    }
    assert!(wrong.is_empty(), "a string was broken without its `\\`\n\n{}\n", wrong.join("\n"));
}
