//! A method whose name asks changes nothing.

use std::fs;

use structure_tests::questions::loaded;
use structure_tests::widths::files;
use structure_tests::workspace;

#[test]
fn no_question_changes_its_subject() {
    let root = workspace();
    let mut found = Vec::new();
    for file in files(&root, &["rs"]) {
        let text = fs::read_to_string(&file).expect("text");
        let name = file.strip_prefix(&root).unwrap_or(&file).display();
        let lines = loaded(&text).into_iter().map(|loaded| format!("{name}:{}: {}", loaded.line, loaded.name));
        found.extend(lines);
    }
    assert!(found.is_empty(), "these ask with `&mut self`: name them by what they do\n\n{}\n", found.join("\n"));
}
