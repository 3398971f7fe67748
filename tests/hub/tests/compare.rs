//! "The same as directly on the member": one command on every route, outputs compared after masking.

use std::fmt::Write as _;

use anyhow::{Result, bail, ensure};
use hub_tests::kubectl::{Invocation, Kubectl, Output};
use hub_tests::lab::{Lab, Route};
use hub_tests::mask::mask;

const UNSENT_INPUT: &str = r#""Unhandled Error" err="EOF""#;

/// Runs `command` on every route and fails unless it ends with `status` and prints the same everywhere.
///
/// What differs between routes on purpose (a namespace) is named after the route: `command` gets its name, and it is masked.
pub(crate) fn everywhere(lab: &Lab, status: i32, command: impl Fn(&Kubectl, &str) -> Invocation) -> Result<Output> {
    let run = |route: Route| command(&lab.kubectl(route), &scope(route)).run();
    let direct = run(Route::Direct)?;
    ensure!(direct.status == status, "directly it exited with {}, not {status}: {direct:?}", direct.status);
    let expected = masked(Route::Direct, &direct);
    let mut differences = String::new();
    for route in Route::PROXIED {
        let proxied = masked(route, &run(route)?);
        if proxied != expected {
            let _ = write!(differences, "\n--- via {} ---\n{}", route.name(), describe(&proxied));
        }
    }
    if !differences.is_empty() {
        bail!("not the same as directly:\n--- directly ---\n{}{differences}", describe(&expected));
    }
    Ok(direct)
}

/// The name of what belongs to one route only.
pub(crate) fn scope(route: Route) -> String {
    format!("only-{}", route.name())
}

fn masked(route: Route, output: &Output) -> Output {
    let names = [(&*scope(route), "<scope>")];
    // kubectl says so on any route, now and then, when the command ended while kubectl was still sending its input.
    let stderr: String = output.stderr.split_inclusive('\n').filter(|line| !line.contains(UNSENT_INPUT)).collect();
    Output { status: output.status, stdout: mask(&output.stdout, &names), stderr: mask(&stderr, &names) }
}

fn describe(output: &Output) -> String {
    format!("exit code {}\n{}{}", output.status, output.stdout, output.stderr)
}
