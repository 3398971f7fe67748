//! The pages are one book: nothing in it leads nowhere, and nothing is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use structure_tests::links::{anchors, broken, links};
use structure_tests::widths::files;
use structure_tests::workspace;

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let anchors_of = |page: &Path| page.extension().is_some_and(|kind| kind == "md").then(|| anchors(&read(page)));
    let wrong: Vec<String> = files(&workspace(), &["md"])
        .iter()
        .flat_map(|page| {
            let links = links(&read(page));
            links
                .into_iter()
                .filter_map(|link| {
                    let what = broken(page, &link, anchors_of)?;
                    Some(format!("{}: {what}", page.display()))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
}

#[test]
fn the_summary_has_every_page() {
    let docs = workspace().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&read(&summary)).iter().map(|link| docs.join(link)).collect();
    let pages = fs::read_dir(&docs).expect("docs").map(|entry| entry.expect("an entry").path());
    let pages: BTreeSet<PathBuf> =
        pages.filter(|page| page.extension().is_some_and(|kind| kind == "md") && *page != summary).collect();
    assert_eq!(listed, pages);
}
