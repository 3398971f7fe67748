//! The pages are one book: none of its links is broken, and no page is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use structure_tests::links::{anchors, broken, has_function, links, named, unfit_for_a_book};
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

/// Links from the book to other files would be broken in the book: it only names these files.
#[test]
fn files_that_the_book_names_are_there_with_their_headings_and_functions() {
    let root = workspace();
    let (mut wrong, mut files_named, mut functions_named) = (Vec::new(), 0, 0);
    for page in files(&root.join("docs"), &["md"]) {
        for named in named(&read(&page)) {
            files_named += 1;
            functions_named += named.functions.len();
            let target = root.join(&named.file);
            let text = if target.is_file() { read(&target) } else { String::new() };
            let has = |heading: &String| text.lines().any(|line| line.trim_start_matches('#').trim() == *heading);
            let has_all = named.functions.iter().all(|function| has_function(&text, function));
            if text.is_empty() || !named.heading.as_ref().is_none_or(has) || !has_all {
                wrong.push(format!("{}: {named:?}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
    assert!(files_named > 40 && functions_named > 10, "{files_named} files and {functions_named} functions are named");
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

#[test]
fn every_page_is_fit_for_the_book() {
    let docs = workspace().join("docs").canonicalize().expect("docs");
    let pages = files(&docs, &["md"]);
    let unfit: Vec<String> = pages
        .iter()
        .flat_map(|page| {
            let found = unfit_for_a_book(&docs, page, &read(page)).into_iter();
            found.map(|what| format!("{}: {what}", page.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(pages.len() > 15 && unfit.is_empty(), "\n\n{}\n", unfit.join("\n"));
}
