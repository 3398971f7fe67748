//! Retired names do not come back, and a word has one meaning.

use std::collections::BTreeMap;
use std::fs;

use structure_tests::names::{ambiguous, retired};
use structure_tests::product;
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

#[test]
fn a_word_with_many_meanings_names_one_type_of_the_product() {
    let root = workspace();
    let mut files = product::files(&root);
    files.sort();
    files.dedup();
    assert!(files.len() > 500, "only {} files", files.len());
    let mut found = BTreeMap::<&str, Vec<String>>::new();
    for file in files {
        for (line, word) in ambiguous(&fs::read_to_string(root.join(&file)).expect("text")) {
            found.entry(word).or_default().push(format!("{}:{line}", file.display()));
        }
    }
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "say by another word what each of these is: {found:#?}");
}
