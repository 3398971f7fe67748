//! Traces cost nothing where they are off: instructions, which do not depend on the machine's load.

use std::process::Command;

/// Counted operations of each kind, after half as many that are not counted.
const OPERATIONS: u64 = 200;
/// A request with traced phases takes at least this many times as much: without a trace, each phase
/// only looks at an empty option.
const TIMES: u64 = 20;

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

#[test]
#[allow(clippy::print_stderr, reason = "why nothing was counted belongs to the output of a run")]
fn a_request_that_is_not_traced_does_next_to_nothing_for_traces() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("nothing is counted: valgrind is not installed");
        return;
    }
    let (untraced, traced) = (counted("untraced"), counted("traced"));
    eprintln!("per request: {} instructions, and {} traced", untraced / OPERATIONS, traced / OPERATIONS);
    assert!(untraced > 0 && untraced * TIMES < traced, "{untraced}, and {traced} traced");
}
