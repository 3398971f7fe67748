//! Prose is read in columns: comments of 100, Markdown and charts' notes of 120.

use std::fs;
use std::path::{Path, PathBuf};

use structure_tests::widths::{Wide, comments, files, hash_comments, markdown, notes, template_comments};
use structure_tests::workspace;

fn check(kinds: &[&str], wide: fn(&str) -> Vec<Wide>) {
    let files = files(&workspace(), kinds);
    assert!(files.len() > 10, "the workspace has files of these kinds: {kinds:?}");
    none_is_too_wide(&files, wide);
}

fn none_is_too_wide(files: &[PathBuf], wide: fn(&str) -> Vec<Wide>) {
    let root = workspace();
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
    check(&["rs", "go", "js"], comments);
}

#[test]
fn comments_of_templates_wrap() {
    let files = files(&workspace().join("charts"), &["tpl", "yaml"]);
    assert!(files.len() > 20, "the charts have templates: {files:?}");
    none_is_too_wide(&files, template_comments);
}

#[test]
fn markdown_wraps() {
    check(&["md"], markdown);
}

#[test]
fn comments_of_scripts_charts_and_manifests_wrap() {
    check(&["sh", "yaml", "toml"], hash_comments);
}

/// These have no extension, or a name that begins with a dot.
#[test]
fn comments_of_the_gate_and_the_build_wrap() {
    let root = workspace();
    let gate = fs::read_dir(root.join(".ci")).expect("the gate").map(|entry| entry.expect("an entry").path());
    let files: Vec<PathBuf> =
        gate.chain(["Dockerfile", "justfile", ".cargo/config.toml"].map(|name| root.join(name))).collect();
    assert!(files.len() > 5, "the gate has three scripts: {files:?}");
    none_is_too_wide(&files, hash_comments);
}

#[test]
fn notes_of_charts_wrap() {
    let charts = workspace().join("charts");
    let files: Vec<PathBuf> =
        files(&charts, &["txt"]).into_iter().filter(|file| file.ends_with("templates/NOTES.txt")).collect();
    assert_eq!(files.len(), 2, "each chart has notes: {files:?}");
    none_is_too_wide(&files, notes);
}
