//! Retired names do not come back.

use std::fs;

use structure_tests::names::retired;
use structure_tests::widths::files;
use structure_tests::workspace;

#[test]
fn nothing_has_a_name_that_was_given_up() {
    let root = workspace();
    let (mut found, all) = (Vec::new(), files(&root, &["rs"]));
    assert!(all.len() > 1_000, "only {} files", all.len());
    for file in all {
        let text = fs::read_to_string(&file).expect("text");
        let file = file.strip_prefix(&root).unwrap_or(&file).display();
        let lines = retired(&text).into_iter();
        found.extend(lines.map(|(line, name, instead)| format!("{file}:{line}: `{name}`: call it {instead}")));
    }
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}
