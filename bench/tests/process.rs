//! The binary as a process.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().expect("it starts")
}

#[test]
fn a_scenario_that_is_not_there_is_refused_before_anything_starts() {
    let output = bench(&["run", "get-h2", "nope"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert_eq!(complaint.trim_end(), "bench: no scenario \"nope\": see `bench list`");
    assert!(output.stdout.is_empty(), "nothing is measured");
}

#[test]
fn the_list_has_each_scenario_once() {
    let list = String::from_utf8(bench(&["list"]).stdout).expect("text");
    let mut names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let (count, listed) = (names.len(), names.contains(&"get-h2"));
    names.sort_unstable();
    names.dedup();
    assert!(listed && names.len() == count, "{list}");
}
