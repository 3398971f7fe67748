//! "The same as directly on the member": one command on several routes, outputs compared after
//! masking.

use std::fmt::Write as _;

use hub_tests::kubectl::{Invocation, Kubectl, Output};
use hub_tests::mask::mask;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{self, Fixture};

const UNSENT_INPUT: &str = r#""Unhandled Error" err="EOF""#;

/// The routes of a list of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    /// To a member which the gateway dials.
    Dialled,
    /// Through tunnels.
    Tunnelled,
}

// === impl Ways ===

impl Ways {
    /// The routes that are compared with the direct one.
    pub(crate) fn proxied(self) -> [Route; 2] {
        match self {
            Self::Dialled => Route::PROXIED,
            Self::Tunnelled => Route::TUNNELLED,
        }
    }

    /// These and the direct one, which comes first.
    pub(crate) fn all(self) -> [Route; 3] {
        let [first, second] = self.proxied();
        [Route::Direct, first, second]
    }

    /// A name for objects of one route only. The same list of tests with other routes uses other
    /// names, also on the direct one.
    pub(crate) fn scope(self, route: Route) -> String {
        match self {
            Self::Dialled => format!("only-{}", route.name()),
            Self::Tunnelled => format!("tunnels-{}", route.name()),
        }
    }

    /// A test named `name` that shares the gateway with others; if it uses tunnels, they exist when
    /// it runs.
    pub(crate) fn test(
        self,
        fixture: &Arc<Fixture>,
        name: &str,
        run: impl FnOnce(&Testbed) -> Result<()> + Send + 'static,
    ) -> Trial {
        match self {
            Self::Dialled => fixture::test(fixture, name, run),
            Self::Tunnelled => fixture::test(fixture, format!("tunnel::{name}"), |testbed| {
                testbed.tunnelled()?;
                run(testbed)
            }),
        }
    }
}

/// Runs `command` on every route of `ways` and fails unless it ends with `status` and prints the
/// same everywhere.
///
/// What differs between routes on purpose (a namespace) is named after the route: `command` gets
/// its name, and it is masked.
pub(crate) fn everywhere(
    testbed: &Testbed,
    ways: Ways,
    status: i32,
    command: impl Fn(&Kubectl, &str) -> Invocation,
) -> Result<Output> {
    let run = |route: Route| command(&testbed.kubectl(route), &ways.scope(route)).run();
    let direct = run(Route::Direct)?;
    ensure!(direct.status == status, "directly it exited with {}, not {status}: {direct:?}", direct.status);
    let expected = masked(&ways.scope(Route::Direct), &direct);
    let mut differences = String::new();
    for route in ways.proxied() {
        let proxied = masked(&ways.scope(route), &run(route)?);
        if proxied != expected {
            let _ = write!(differences, "\n--- via {} ---\n{}", route.name(), describe(&proxied));
        }
    }
    if !differences.is_empty() {
        bail!("not the same as directly:\n--- directly ---\n{}{differences}", describe(&expected));
    }
    Ok(direct)
}

fn masked(scope: &str, output: &Output) -> Output {
    let names = [(scope, "<scope>")];
    // kubectl sometimes prints this, on any route, if the command ended while kubectl was still
    // sending its input.
    let stderr: String = output.stderr.split_inclusive('\n').filter(|line| !line.contains(UNSENT_INPUT)).collect();
    Output { status: output.status, stdout: mask(&output.stdout, &names), stderr: mask(&stderr, &names) }
}

fn describe(output: &Output) -> String {
    format!("exit code {}\n{}{}", output.status, output.stdout, output.stderr)
}
