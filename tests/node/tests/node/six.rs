//! A hub and a member with IPv6 only, in namespaces within this run's.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::family::Family;
use node_tests::image::{self, TAG, repository};
use node_tests::namespaces;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

/// Argument that makes this executable start this hub and member.
pub(crate) const WORD: &str = "six";
const LIMIT: Duration = Duration::from_mins(8);
const LISTED: Duration = Duration::from_mins(1);

pub(crate) fn nested() -> Result<()> {
    let nested = namespaces::nested(WORD)?.limit(LIMIT);
    // It takes half a minute to make them again.
    let nested = image::made().into_iter().fold(nested, |nested, made| nested.env(image::MADE, made));
    nested.run()?.success().map(drop)
}

/// Entry point of the process inside.
#[allow(clippy::print_stderr, reason = "the test outside shows it")]
pub(crate) fn main() -> ExitCode {
    let outcome = Testbed::start(Family::V6).and_then(|mut testbed| {
        joined(&testbed).with_context(|| {
            testbed.save_logs();
            format!("the logs are in {}", testbed.keep().display())
        })
    });
    outcome.map_or_else(
        |error| {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Checks that pods of all four programs are ready, and reach each other.
fn joined(testbed: &Testbed) -> Result<()> {
    let operator = Operator::new(testbed, &[("berlin", &testbed.hub), ("oslo", &testbed.member)])?;
    let [gateway, server, controllers] =
        ["cluster-gateway", "tunnel-server", "cluster-gateway-controllers"].map(repository);
    let image = format!("{}:{TAG}", repository("tunnel-agent"));
    operator.run(&format!(
        "kubectl clusters install --set image.repository={gateway} \
         --set tunnel.server.enabled=true --set tunnel.server.image.repository={server} \
         --set delivery.enabled=true --set controllers.image.repository={controllers}
         kubectl clusters join berlin --rights view
         kubectl clusters join oslo --tunnel --rights view --agent-image {image}"
    ))?;
    wait::until("both agents", LISTED, || {
        let listed = operator.run("kubectl clusters list")?;
        ensure!(listed.matches(" Ready ").count() == 2 && listed.contains("2/2"), "{listed}");
        Ok(())
    })?;
    operator.run("kubectl -n vela-system rollout status deployment cluster-gateway-controllers --timeout=120s")?;
    let pods = operator.run("kubectl clusters get pods --all -A -o json")?;
    ensure!(pods.contains("fd00:244::3:") && !pods.contains("10.244."), "not IPv6 alone: {pods}");
    Ok(())
}
