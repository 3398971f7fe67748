//! `docs` is a book that mdBook builds without a word of complaint: no page of the summary is
//! missing, no include leads nowhere, no tag stays open, no link leaves the book for a file.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use parking_lot::Mutex;
use structure_tests::links::dead;
use structure_tests::widths::files;
use structure_tests::workspace;
use tempfile::tempdir;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps what mdBook warns of: it builds all the same.
#[derive(Clone, Default)]
struct Complaints(Arc<Mutex<Vec<String>>>);

struct Text(String);

// === impl Complaints ===

impl Subscriber for Complaints {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{value:?} ");
    }
}

/// Builds the book at `root` elsewhere, and returns what mdBook complained of.
fn built(root: &Path, settings: &Path) -> Vec<String> {
    let into = tempdir().expect("a directory");
    let complaints = Complaints::default();
    let outcome = tracing::subscriber::with_default(complaints.clone(), || {
        let mut config = Config::from_disk(settings)?;
        config.build.build_dir = into.path().to_path_buf();
        MDBook::load_with_config(root, config)?.build()
    });
    let mut all = complaints.0.lock().clone();
    all.extend(outcome.err().map(|error| format!("{error:#}")));
    if all.is_empty() {
        assert!(into.path().join("index.html").is_file(), "no book came of it");
    }
    let pages = files(into.path(), &["html"]);
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page of the book");
        let links = dead(into.path(), &page, &text).into_iter();
        all.extend(links.map(|link| format!("{}: {link}: not in the book", page.display())));
    }
    all
}

#[test]
fn the_pages_are_a_book() {
    let root = workspace();
    let complaints = built(&root, &root.join("book.toml"));
    assert!(complaints.is_empty(), "\n\n{}\n", complaints.join("\n"));
}

/// With the settings of the real one: without `create-missing = false` mdBook would write a page
/// that is missing.
#[test]
fn what_is_wrong_with_a_book_is_seen() {
    let root = tempdir().expect("a directory");
    let docs = root.path().join("docs");
    fs::create_dir(&docs).expect("created");
    let write = |file: &str, text: &str| fs::write(docs.join(file), text).expect("written");
    let complaints = || built(root.path(), &workspace().join("book.toml")).join("\n");
    write("SUMMARY.md", "# Summary\n\n- [One](one.md)\n");
    write("one.md", "# One\n");
    assert_eq!(complaints(), "");
    write("one.md", "# One\n\n{{#include no-such.md}}\n");
    assert!(complaints().contains("no-such.md"), "{}", complaints());
    write("one.md", "# One\n\nIn <place> of it.\n");
    assert!(complaints().contains("place"), "{}", complaints());
    write("one.md", "# One\n\n[Read](../README.md#me) [it](#one), [all](https://a.example) of [it](one.md#one).\n");
    assert!(complaints().contains("one.html: ../README.html#me: not"), "{}", complaints());
    assert!(!complaints().contains("one.html#one: not"), "{}", complaints());
    write("SUMMARY.md", "# Summary\n\n- [One](one.md)\n- [Two](two.md)\n");
    write("one.md", "# One\n");
    assert!(complaints().contains("two.md"), "{}", complaints());
}
