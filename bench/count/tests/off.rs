//! Traces cost nothing where they are off, and dialects next to nothing on the native path:
//! instructions, which do not depend on the machine's load.

use std::io::{Write as _, stderr};
use std::process::Command;

/// Counted operations of each kind, after half as many that are not counted.
const OPERATIONS: u64 = 200;
/// A request with traced phases takes at least this many times as much: without a trace, each phase
/// only looks at an empty option.
const TIMES: u64 = 20;
/// The parse of a native path with all dialects on, at most, in percent of that with none.
const PERCENT: u64 = 102;

/// Instructions of the operation called `name`, all [`OPERATIONS`] together.
fn counted(name: &str) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("callgrind");
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*micro::Operation::run"])
        .arg(format!("--callgrind-out-file={}", output.display()))
        .args([env!("CARGO_BIN_EXE_count"), "operate", name, &OPERATIONS.to_string()])
        .output()
        .expect("valgrind runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(output).expect("callgrind's output");
    let total = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    total.and_then(|total| total.trim().parse().ok()).expect("a sum")
}

/// Set where valgrind must be there: the merge gate sets it where it installs valgrind.
const REQUIRED: &str = "REQUIRE_VALGRIND";

/// Whether valgrind is there. Says so if it is not, even where the test's output is not shown.
fn can_count() -> bool {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var_os(REQUIRED).is_none(), "valgrind is not installed, and {REQUIRED} is set");
        let _ = writeln!(stderr(), "SKIPPED, nothing is counted: valgrind is not installed"); // there may be none
    }
    is_there
}

#[test]
#[allow(clippy::print_stderr, reason = "what was counted belongs to the output of a run")]
fn a_request_that_is_not_traced_does_next_to_nothing_for_traces() {
    if !can_count() {
        return;
    }
    let (untraced, traced) = (counted("untraced"), counted("traced"));
    eprintln!("per request: {} instructions, and {} traced", untraced / OPERATIONS, traced / OPERATIONS);
    assert!(untraced > 0 && untraced * TIMES < traced, "{untraced}, and {traced} traced");
}

#[test]
#[allow(clippy::print_stderr, reason = "what was counted belongs to the output of a run")]
fn a_native_path_is_parsed_as_fast_with_all_dialects_on() {
    if !can_count() {
        return;
    }
    let (alone, among) = (counted("route"), counted("route-dialects"));
    eprintln!("per path: {} instructions, and {} among dialects", alone / OPERATIONS, among / OPERATIONS);
    assert!(alone > 0 && among * 100 <= alone * PERCENT, "{alone}, and {among} among dialects");
}
