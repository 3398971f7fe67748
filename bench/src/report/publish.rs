//! The newest report into the documentation: its text between two markers, its charts beside it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::markdown::{self, Layout};
use super::store;

const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";
const CHARTS: &str = "performance";

/// Writes the report in `out` to `performance.md` and `performance/` in `documents`.
pub fn publish(out: &Path, documents: &Path) -> Result<()> {
    let report = store::load(out)?;
    ensure!(
        report.scenarios.iter().all(|section| !section.run.smoke),
        "a smoke run's figures mean nothing: run `bench all` first"
    );
    let path = documents.join("performance.md");
    let document = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let body = markdown::body(&report, Layout { level: 3, charts: CHARTS });
    let document = replaced(&document, &body).with_context(|| format!("{} lacks a marker", path.display()))?;
    store::charts(&report, &documents.join(CHARTS))?;
    store::write(&path, &document)
}

fn replaced(document: &str, body: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{body}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{report, smoke};

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let (out, documents) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        store::save(&report(), out.path()).unwrap();
        let path = documents.path().join("performance.md");
        fs::write(&path, format!("# By hand\n{BEGIN}\nold\n{END}\nby hand too\n")).unwrap();
        fs::create_dir(documents.path().join(CHARTS)).unwrap();
        fs::write(documents.path().join(CHARTS).join("gone.svg"), "old").unwrap();

        publish(out.path(), documents.path()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# By hand\n<!--") && text.ends_with("-->\nby hand too\n"), "{text}");
        assert!(text.contains("### Requests that nobody sends") && text.contains("](performance/fake.svg)"), "{text}");
        assert!(!text.contains("old"), "{text}");
        let charts: Vec<_> =
            fs::read_dir(documents.path().join(CHARTS)).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(charts, ["fake.svg"]);

        publish(out.path(), documents.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "again: the same");
    }

    #[test]
    fn smoke_is_not_published_and_a_document_without_markers_is_left_alone() {
        let (out, documents) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = documents.path().join("performance.md");
        fs::write(&path, "by hand").unwrap();
        store::save(&smoke(), out.path()).unwrap();
        assert!(publish(out.path(), documents.path()).unwrap_err().to_string().contains("smoke"));
        store::save(&report(), out.path()).unwrap();
        assert!(publish(out.path(), documents.path()).unwrap_err().to_string().contains("marker"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "by hand");
    }
}
