//! Keeps `docs/contract.md` honest: all requirements are in it, each with tests or with the reason
//! for having none, and the tests named there exist. Those of the attacks in `docs/security.md`,
//! too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Letters of the requirements and how many each has.
const REQUIREMENTS: [(char, usize); 9] =
    [('A', 17), ('B', 9), ('C', 22), ('D', 13), ('E', 24), ('T', 10), ('P', 10), ('S', 13), ('K', 16)];

/// The directory of each crate's sources, as the document names the crate.
const CRATES: [(&str, &str); 27] = [
    ("api", "crates/api/src"),
    ("audit", "crates/audit/src"),
    ("auth", "crates/auth/src"),
    ("controllers", "controllers/src"),
    ("delivery", "crates/delivery/src"),
    ("exec", "crates/exec/src"),
    ("hub-client", "crates/hub/src"),
    ("links", "crates/links/src"),
    ("net", "crates/net/src"),
    ("placement", "crates/placement/src"),
    ("register", "crates/register/src"),
    ("telemetry", "crates/telemetry/src"),
    ("silence", "crates/telemetry/tests/silence"),
    ("traces", "crates/traces/src"),
    ("gateway", "gateway/src"),
    ("protocol", "crates/tunnel/src"),
    ("server", "tunnel-server/src"),
    ("agent", "tunnel-agent/src"),
    ("memory", "gateway/tests/memory/main"),
    ("process", "gateway/tests/process"),
    ("demo", "demo/src"),
    ("cli", "cli/src"),
    ("system", "tests/system/tests/system"),
    ("tunnel", "tests/tunnel/tests/tunnel"),
    ("hub", "tests/hub/tests"),
    ("charts", "tests/hub/tests/charts"),
    ("controllers-hub", "controllers/tests/hub"),
];

/// A row: its id, and its last column.
struct Row {
    id: String,
    shown_by: String,
}

#[test]
fn every_requirement_has_one_row() {
    let ids: Vec<_> = rows().into_iter().map(|row| row.id).collect();
    let expected: Vec<_> = REQUIREMENTS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")))
        .collect();
    assert_eq!(ids, expected);
}

#[test]
fn every_row_has_tests_or_a_reason() {
    for row in rows() {
        let words = row.shown_by.split_whitespace().count();
        assert!(!tests(&row.shown_by).is_empty() || words >= 5, "{}: {}", row.id, row.shown_by);
    }
}

#[test]
fn every_test_exists() {
    let missing: BTreeSet<_> = rows()
        .iter()
        .flat_map(|row| tests(&row.shown_by).into_iter().map(|test| format!("{}: {test}", row.id)).collect::<Vec<_>>())
        .filter(|named| !exists(named.split_once(": ").expect("an id and a test").1))
        .collect();
    assert!(missing.is_empty(), "no such tests:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_attack_is_shown_by_tests_that_exist() {
    let attacks = attacks();
    assert!(attacks.len() >= 20, "only {} rows were found", attacks.len());
    for row in attacks {
        let tests = tests(&row.shown_by);
        assert!(!tests.is_empty(), "{}: no test", row.id);
        let missing: Vec<_> = tests.into_iter().filter(|test| !exists(test)).collect();
        assert!(missing.is_empty(), "{}: no such tests: {missing:?}", row.id);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rows() -> Vec<Row> {
    let numbered = |row: &Row| row.id.ends_with(|last: char| last.is_ascii_digit());
    table_rows(&document("contract.md")).into_iter().filter(numbered).collect()
}

/// The attack itself is the id.
fn attacks() -> Vec<Row> {
    let text = document("security.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Attacks")).expect("a section on attacks");
    table_rows(section).into_iter().filter(|row| row.id != "attack").collect()
}

fn document(name: &str) -> String {
    let path = root().join("docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table_rows(text: &str) -> Vec<Row> {
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.map(|cells| Row { id: cells[0].clone(), shown_by: cells.last().expect("cells").clone() }).collect()
}

/// Texts in backticks that have the form of a test's name.
fn tests(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).filter(|text| text.contains("::")).collect()
}

/// Looks for the test in the file of the deepest module that is a file.
fn exists(test: &str) -> bool {
    let (module, name) = test.rsplit_once("::").expect("a path");
    let (first, rest) = module.split_once("::").unwrap_or((module, ""));
    let Some((_, sources)) = CRATES.iter().find(|(name, _)| *name == first) else { return false };
    let mut path = root().join(sources);
    path.extend(rest.split("::").filter(|module| !module.is_empty()));
    if matches!(first, "hub" | "charts" | "controllers-hub") {
        return files(&path).iter().any(|text| text.contains(name));
    }
    loop {
        if let Ok(text) = std::fs::read_to_string(path.with_extension("rs")) {
            return is_test(&text, name);
        }
        if !path.pop() || path.ends_with("..") {
            return false;
        }
    }
}

/// The module's file and all below it: tests on the real hub are named by a text and the module
/// that lists them.
fn files(module: &Path) -> Vec<String> {
    let below = std::fs::read_dir(module).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let paths = below.chain([module.with_extension("rs")]);
    paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// Whether a function has an attribute of a test, or is passed to one of the macros that make tests
/// of scenarios.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let Some(at) = lines.iter().position(|line| line.contains(&format!("fn {name}("))) else { return false };
    let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    let mut macros = text.split("across_").skip(1).filter_map(|rest| rest.split_once("!(")?.1.split_once(')'));
    attributes.any(|line| line.contains("test"))
        || macros.any(|(scenarios, _)| scenarios.split(',').any(|scenario| scenario.trim() == name))
}
