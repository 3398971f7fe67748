//! Links between the workspace's pages: the file must exist, and have the heading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The targets of a page's links, without those elsewhere on the web.
pub fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them: in lower case, without
/// punctuation, words joined by dashes, and numbered when repeated.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    headings
        .map(|heading| {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect();
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 { format!("{name}-{}", *count - 1) } else { name }
        })
        .collect()
}

/// The error of a link on `page`, if it has one. `anchors_of` reads a page.
pub fn broken(page: &Path, link: &str, anchors_of: impl Fn(&Path) -> Option<BTreeSet<String>>) -> Option<String> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target: PathBuf = if file.is_empty() { page.to_path_buf() } else { page.with_file_name("").join(file) };
    if !target.exists() {
        return Some(format!("{link}: there is no such file"));
    }
    let anchor = anchor?;
    match anchors_of(&target) {
        Some(anchors) if anchors.contains(anchor) => None,
        Some(_) => Some(format!("{link}: there is no such heading")),
        None => None,
    }
}

/// Parts of a page that mdBook would not show unchanged: links to files outside `book`, which it
/// does not copy; tags, which a browser hides; and includes, which it replaces even in blocks of
/// code.
pub fn unfit_for_a_book(book: &Path, page: &Path, text: &str) -> Vec<String> {
    let file = |link: &str| link.split('#').next().unwrap_or_default().to_owned();
    let is_outside = |link: &String| {
        let found = page.with_file_name(file(link)).canonicalize();
        !file(link).is_empty() && !found.is_ok_and(|found| found.starts_with(book))
    };
    let mut unfit: Vec<String> = links(text).into_iter().filter(is_outside).collect();
    let prose = prose(text);
    for said in prose.split('`').step_by(2) {
        let tags =
            said.split('<').skip(1).filter(|rest| rest.starts_with(|sign: char| sign == '/' || sign.is_alphabetic()));
        unfit.extend(tags.map(|rest| format!("<{}>", rest.split('>').next().unwrap_or_default())));
    }
    unfit.extend(text.contains("{{#").then(|| "{{#".to_owned()));
    unfit
}

/// A file of the workspace that a page only names, since the file is no page of the book.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub file: String,
    /// The heading in quotation marks after it.
    pub heading: Option<String>,
    /// The functions of that file in backquotes, in parentheses after it.
    pub functions: Vec<String>,
}

/// The files in backquotes, each with the heading and functions that the page names.
pub fn named(text: &str) -> Vec<Named> {
    let prose = prose(text);
    let quotes: Vec<&str> = prose.split('`').collect();
    let is_file = |quote: &str| {
        let is_kind = [".rs", ".md"].iter().any(|kind| quote.ends_with(kind));
        is_kind && quote.contains('/') && !quote.starts_with("target/") && !quote.contains([' ', '…', '<', '*'])
    };
    let of = |at: usize| {
        let (file, behind) = (quotes[at], quotes.get(at + 1)?);
        let heading =
            behind.strip_prefix(", \"").and_then(|rest| rest.split_once('"')).map(|(quoted, _)| words(quoted));
        is_file(file).then(|| Named { file: file.to_owned(), heading, functions: listed(&quotes[at + 1..]) })
    };
    (1..quotes.len()).step_by(2).filter_map(of).collect()
}

/// The texts in backquotes within the parentheses that open in the first of `pieces`, which are
/// alternately outside and inside backquotes.
fn listed(pieces: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for pair in pieces.chunks_exact(2) {
        let is_next = if found.is_empty() { pair[0].trim() == "(" } else { pair[0].trim() == "," };
        if !is_next {
            break;
        }
        found.push(pair[1].to_owned());
    }
    found
}

/// The text on one line, with single blanks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a `source` has a function of this name, of any type.
pub fn has_function(source: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    source.split(&format!("fn {name}")).skip(1).any(|rest| rest.starts_with(['(', '<']))
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found_outside_of_code() {
        let text =
            "# A `b` (c)\n[x](y.md#z) [w](https://a.example)\n```\n[no](no)\n# no\n```\n    [no](no)\n## A b c\n";
        assert_eq!(links(text), ["y.md#z"]);
        assert_eq!(anchors(text), BTreeSet::from(["a-b-c".to_owned(), "a-b-c-1".to_owned()]));
    }

    #[test]
    fn files_that_are_named_are_found() {
        let text = "See `a/b.md`, \"What\nis\", `c.md`, `d d/e.rs` and `f/g.rs` (`h`,\n`I::j`), `k`.\n";
        let [page, source] = named(text).try_into().expect("two files");
        assert_eq!((&*page.file, page.heading.as_deref(), page.functions.len()), ("a/b.md", Some("What is"), 0));
        assert_eq!((&*source.file, source.heading), ("f/g.rs", None));
        assert_eq!(source.functions, ["h", "I::j"]);
        assert!(has_function("pub fn h<T>() {}", "h") && has_function("fn j(self)", "I::j"));
        assert!(!has_function("fn hat() {} fn j2() {}", "h") && !has_function("h(); I::j()", "I::j"));
    }

    #[test]
    fn what_is_no_page_of_a_book_is_found() {
        let book = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("a directory").join("src");
        let unfit = |text: &str| unfit_for_a_book(&book, &book.join("links.rs"), text);
        assert_eq!(unfit("[a](lib.rs#a) [b](#b) [c](https://c) `<d>` 1 < 2\n\n    <e>\n<!-- f -->\n"), [""; 0]);
        assert_eq!(unfit("[a](../Cargo.toml#a), [b](no.md)\n"), ["../Cargo.toml#a", "no.md"]);
        assert_eq!(unfit("In `one`\n<place> of </it>.\n"), ["<place>", "</it>"]);
        assert_eq!(unfit("```\n{{#include b.md}}\n```\n"), ["{{#"]);
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let of = |_: &Path| Some(BTreeSet::from(["there".to_owned()]));
        assert_eq!(broken(&page, "src/lib.rs#there", of), None);
        assert_eq!(broken(&page, "#there", of), None);
        assert!(broken(&page, "src/lib.rs#else", of).is_some());
        assert!(broken(&page, "src/none.rs", of).is_some());
    }
}
