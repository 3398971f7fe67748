//! The terminal in the README shows the screens of getting started, which tests of `kubectl
//! clusters` compare with its output.

use std::fs;

use structure_tests::recording::recording;
use structure_tests::workspace;

#[test]
fn the_terminal_shows_the_screens_of_getting_started() {
    let docs = workspace().join("docs");
    let page = fs::read_to_string(docs.join("getting-started.md")).expect("the page");
    let picture = recording(&page);
    if std::env::var_os("WRITE_RECORDING").is_some() {
        fs::write(docs.join("terminal.svg"), &picture).expect("written");
    }
    let kept = fs::read_to_string(docs.join("terminal.svg")).unwrap_or_default();
    assert!(kept == picture, "draw it again: WRITE_RECORDING=1 cargo test -p structure-tests recording");
}
