//! The gate runs every test that there is, and lints every library.

use std::fs;

use structure_tests::manifests::packages;
use structure_tests::unrun::{examples, has_tests, has_untested_library, untested};
use structure_tests::{widths, workspace};

/// Programs whose manifests say that they have no tests, besides fuzz targets. With fewer, this
/// test does not see them.
const PROGRAMS: usize = 9;

#[test]
fn no_doc_comment_has_code_that_only_rustdoc_would_run() {
    let (root, mut wrong) = (workspace(), Vec::new());
    for file in widths::files(&root, &["rs"]) {
        let text = fs::read_to_string(&file).expect("text");
        let place = |line: &usize| format!("{}:{line}", file.strip_prefix(&root).unwrap_or(&file).display());
        wrong.extend(examples(&text).iter().map(place));
    }
    assert!(
        wrong.is_empty(),
        "make it a test, or name its language (`text`), in a comment of `///`:\n\n{}\n",
        wrong.join("\n")
    );
}

#[test]
fn no_program_that_is_not_tested_has_tests() {
    let (root, mut seen) = (workspace(), 0);
    for package in packages(&root) {
        let directory = root.join(&package.directory);
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("a manifest");
        for path in untested(&manifest) {
            seen += usize::from(package.name != "fuzz");
            let text = fs::read_to_string(directory.join(path)).expect("a program");
            assert!(!has_tests(&text), "{}/{path}: no test of it would run", package.directory.display());
        }
    }
    assert_eq!(seen, PROGRAMS, "if there is another program, correct the number");
}

/// `.ci/lint` lints a library as its unit tests are compiled.
#[test]
fn each_library_is_linted_as_a_whole() {
    let (root, without_tests) = (workspace(), concat!("not(", "test)"));
    for package in packages(&root) {
        let manifest = fs::read_to_string(root.join(&package.directory).join("Cargo.toml")).expect("a manifest");
        assert!(!has_untested_library(&manifest), "{}: the gate would not lint its library", package.name);
    }
    for file in widths::files(&root, &["rs"]) {
        let text = fs::read_to_string(&file).expect("text");
        assert!(!text.contains(without_tests), "{}: the gate would not lint what is not in tests", file.display());
    }
}
