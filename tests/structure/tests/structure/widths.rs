//! Prose is read in columns: comments of 100, Markdown of 120.

use std::fs;
use std::path::Path;

use structure_tests::widths::{Wide, comments, files, hash_comments, markdown};
use structure_tests::workspace;

fn check(kinds: &[&str], wide: fn(&str) -> Vec<Wide>) {
    let root = workspace();
    let files = files(&root, kinds);
    assert!(files.len() > 10, "the workspace has files of these kinds: {kinds:?}");
    let too_wide: Vec<String> = files.iter().flat_map(|file| report(&root, file, wide)).collect();
    assert!(too_wide.is_empty(), "\n\n{}\n", too_wide.join("\n"));
}

fn report(root: &Path, file: &Path, wide: fn(&str) -> Vec<Wide>) -> Vec<String> {
    let text = fs::read_to_string(file).expect("text");
    let name = file.strip_prefix(root).unwrap_or(file).display();
    wide(&text).iter().map(|wide| format!("{name}:{}: {} columns", wide.line, wide.columns)).collect()
}

#[test]
fn comments_wrap() {
    check(&["rs"], comments);
}

#[test]
fn markdown_wraps() {
    check(&["md"], markdown);
}

#[test]
fn comments_of_scripts_charts_and_manifests_wrap() {
    check(&["sh", "yaml", "toml"], hash_comments);
}
