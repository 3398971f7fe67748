//! Links between the workspace's pages: the file is there, and the heading in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The targets of a page's links that are not elsewhere on the web.
pub fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The names by which a page's headings are linked to, as GitHub and mdBook make them: in lower
/// case, without punctuation, words joined by dashes, and numbered when they come again.
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

/// What is wrong with a link on `page`, if something is. `anchors_of` reads a page.
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

/// Without blocks of code.
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
    fn a_link_needs_its_file_and_its_heading() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let of = |_: &Path| Some(BTreeSet::from(["there".to_owned()]));
        assert_eq!(broken(&page, "src/lib.rs#there", of), None);
        assert_eq!(broken(&page, "#there", of), None);
        assert!(broken(&page, "src/lib.rs#else", of).is_some());
        assert!(broken(&page, "src/none.rs", of).is_some());
    }
}
