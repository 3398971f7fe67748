//! Files are short enough to read in one go, and functions to see at a glance.

use std::fs;
use std::path::PathBuf;

use structure_tests::sizes::{CRUMB, FILE, FUNCTION, MOST_CRUMBS, functions, lines};
use structure_tests::{product, workspace};

/// The files of the programs, with their texts.
fn sources() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let files = product::files(&root);
    assert!(files.len() > 500, "{} files", files.len());
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(root.join(file)).expect("text"))).collect()
}

#[test]
fn no_file_is_long() {
    let long =
        sources().into_iter().map(|(file, text)| (file, text.lines().count())).filter(|(_, lines)| *lines > FILE);
    let long: Vec<_> = long.map(|(file, lines)| format!("{}: {lines} lines", file.display())).collect();
    assert!(long.is_empty(), "\n\n{}\n", long.join("\n"));
}

#[test]
fn few_files_are_crumbs() {
    let sources = sources();
    let crumbs: Vec<_> = sources.iter().filter(|(_, text)| lines(text) < CRUMB).map(|(file, _)| file).collect();
    let (count, all) = (crumbs.len(), sources.len());
    assert!(count * 100 < all * MOST_CRUMBS, "{count} of {all} files are shorter than {CRUMB} lines: {crumbs:#?}");
}

#[test]
fn functions_are_short() {
    let of = |(file, text): (PathBuf, String)| {
        let place = move |line| format!("{}:{line}", file.display());
        functions(&text).into_iter().map(move |one| (one.lines, place(one.line), one.name)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = sources().into_iter().flat_map(of).collect();
    all.sort();
    let (count, all) = (all.iter().filter(|(lines, ..)| *lines > FUNCTION).count(), all.as_slice());
    let longest = &all[all.len() - count..];
    assert!(
        count * 100 <= all.len(),
        "{count} of {} functions are longer than {FUNCTION} lines: {longest:#?}",
        all.len()
    );
}
