//! What the merge gate runs once more after a failure, and what it does not: tested with the
//! function of `.ci/run` itself, on the output of a failed test.

use std::fs;
use std::path::Path;
use std::process::Command;

use structure_tests::workspace;

/// The end of the harness's output.
const NAMED: &str = "\nfailures:\n    the ledger holds whatever dies\n\ntest result: FAILED. 0 passed; 1 failed\n";
/// The variables that the gate's function uses.
const GATE: &str = r#"
set -euo pipefail
printf '#!/bin/sh\necho "seed $CHAOS_SEED"\necho "test result: ok. 1 passed"\n' >"$1/program"
chmod +x "$1/program"
eval "$(sed -n '/^again() {$/,/^}$/p' .ci/run)"
beside=$1 tested=$1/tested cargo=101 verdicts=""
code=0
again || code=$?
echo "verdicts: $verdicts"
exit "$code"
"#;

/// Whether the gate forgives a chaos run that printed `output` and passes the next time; and the
/// gate's output.
fn forgiven(name: &str, output: &str) -> (bool, String) {
    let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("again-{name}"));
    let _ = fs::remove_dir_all(&beside);
    fs::create_dir_all(&beside).unwrap();
    let write = |file: &str, text: &str| fs::write(beside.join(file), text).unwrap();
    write("programs", "tests/node node-1\n");
    write("node-1.passed", "");
    write("tested", "error: 1 target failed:\n");
    write("chaos-1.failed", &format!("cd {0}\nprogram={0}/program\n", beside.display()));
    write("chaos-1.output", &format!("chaos     0.0s  seed 7\n{output}{NAMED}"));
    let gate = Command::new("bash").args(["-c", GATE, "gate"]).arg(&beside).current_dir(workspace()).output();
    let gate = gate.unwrap();
    let said = [gate.stdout, gate.stderr].concat();
    (gate.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn what_ran_out_of_time_is_run_once_more_with_its_seed() {
    let (forgiven, said) = forgiven("late", "chaos    61.0s  TOO LITTLE  the run: no download was whole\n");
    assert!(forgiven && said.contains("seed 7") && said.contains("passed: the ledger holds"), "{said}");
}

#[test]
fn a_lost_write_is_not_forgiven_whatever_the_next_run_says() {
    let (forgiven, said) = forgiven("lost", "chaos    61.0s  VIOLATION  the ledger: told 201, and it does not exist\n");
    assert!(!forgiven && said.contains("a violation is final") && !said.contains("passed:"), "{said}");
}
