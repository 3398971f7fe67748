//! What pages say in figures and quote as messages is what was measured, and what programs say.

use std::fs;
use std::path::Path;

use structure_tests::figures::{is_said, linked, literals, quoted, section, unfounded, units};
use structure_tests::widths::files;
use structure_tests::workspace;

const PERFORMANCE: &str = "docs/performance.md";
/// Units of what is measured.
const UNITS: [&str; 3] = [" µs", " ms ", " KiB of memory"];

fn read(page: &str) -> String {
    read_path(&workspace().join(page))
}

fn read_path(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The literals of the programs and libraries in these folders, without their tests.
fn said(folders: &[&str]) -> String {
    let root = workspace();
    let is_product = |path: &Path| {
        let path = path.strip_prefix(&root).unwrap_or(path).to_string_lossy();
        path.contains("/src/") && !path.contains("/tests/") && !path.ends_with("tests.rs")
    };
    let sources = folders.iter().flat_map(|folder| files(&root.join(folder), &["rs"]));
    sources.filter(|path| is_product(path)).map(|path| literals(&read_path(&path))).collect()
}

#[test]
fn the_readmes_figures_stand_where_they_link() {
    let (readme, performance) = (read("README.md"), read(PERFORMANCE));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for unit in units(&readme) {
        let (anchors, prose) = linked(&unit, PERFORMANCE);
        if anchors.is_empty() {
            wrong.extend(UNITS.iter().any(|name| unit.contains(name)).then(|| format!("no section is linked: {unit}")));
            continue;
        }
        count += 1;
        let sections: Vec<_> = anchors.iter().map(|anchor| section(&performance, anchor)).collect();
        let unfounded = unfounded(&prose, &sections.join("\n"));
        wrong.extend((!unfounded.is_empty()).then(|| format!("{unfounded:?} in none of {anchors:?}: {unit}")));
    }
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
    assert!(count >= 6, "{count} bullets and rows have figures");
}

#[test]
fn the_messages_of_the_errors_table_are_the_programs_own() {
    let said = said(&["gateway", "crates", "tunnel-server", "tunnel-agent"]);
    let messages = quoted(&read("docs/operations.md"), "| code | message contains", 1);
    let unsaid: Vec<_> = messages.iter().filter(|message| !is_said(&said, message)).collect();
    assert!(unsaid.is_empty(), "no program says {unsaid:?}");
    assert!(messages.len() > 30, "{messages:?}");
}

/// Where the commands run in tests there are no pods, and so no logs to look through.
#[test]
fn what_pages_look_for_in_logs_is_what_programs_log() {
    let said = said(&["gateway", "crates", "tunnel-server", "tunnel-agent", "controllers"]);
    let pages: String = files(&workspace().join("docs"), &["md"]).iter().map(|page| read_path(page)).collect();
    let wanted: Vec<_> = pages
        .lines()
        .filter(|line| line.contains(" logs "))
        .flat_map(|line| line.split(" grep '").skip(1).filter_map(|rest| rest.split_once('\'')))
        .map(|(wanted, _)| wanted)
        .collect();
    let unsaid: Vec<_> = wanted.iter().filter(|wanted| !is_said(&said, wanted)).collect();
    assert!(unsaid.is_empty(), "no program logs {unsaid:?}");
    assert!(wanted.len() >= 7, "{wanted:?}");
}
