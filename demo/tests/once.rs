//! The demo as its user meets it, in this process: everything starts, every step passes, and
//! nothing is left behind.

use std::path::Path;

use anyhow::{Context as _, Result};
use demo::{
    installation::Installation,
    report::{Report, Tally},
    steps::Step,
};
use secrecy::ExposeSecret as _;

/// Steps that fail when there is no osaka: two that count clusters, three about its agent, and two
/// of the workload that goes there.
const WITHOUT_OSAKA: usize = 7;

#[tokio::test]
async fn every_step_passes_and_nothing_is_left_behind() -> Result<()> {
    let installation = Installation::start(0).await?;
    let mut text = Vec::new();
    let mut report = Report::new(&mut text);
    report.introduce(&installation)?;
    let tally = report.steps(&installation.tour).await?;
    report.invite(&installation)?;
    let text = String::from_utf8(text)?;

    assert_eq!(tally, Tally { run: Step::ALL.len(), failed: 0 }, "{text}");
    assert!(text.contains(&installation.address.to_string()), "{text}");
    for secret in [&installation.identities.admin, &installation.identities.stranger, installation.tour.guest.token()] {
        assert!(!text.contains(secret.expose_secret()), "a token is printed");
    }
    let directory =
        installation.kubeconfig.parent().map(Path::to_path_buf).context("the kubeconfig has a directory")?;
    assert!(directory.is_dir());
    installation.stop().await?;
    assert!(!directory.exists(), "files with credentials are left");
    Ok(())
}

#[tokio::test]
async fn a_step_that_cannot_work_is_counted_and_the_next_ones_run() -> Result<()> {
    let installation = Installation::start(0).await?;
    let osaka = installation.tour.members.last().context("there are members")?;
    // Without its manifest the gateway has one cluster less than the demo promises, and its agent
    // has no use.
    installation.tour.manifests.remove(osaka)?;
    let mut text = Vec::new();
    let left_out = async {
        // Until the gateway noticed, the steps would rightly pass.
        while Step::Clusters.run(&installation.tour).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), left_out).await.context("the gateway still has osaka")?;
    let tally = Report::new(&mut text).steps(&installation.tour).await?;
    let text = String::from_utf8(text)?;
    assert_eq!(tally, Tally { run: Step::ALL.len(), failed: WITHOUT_OSAKA }, "{text}");
    assert!(
        text.contains("✗ list the pods of each cluster") && text.contains("✓ remove the cluster that was added"),
        "{text}"
    );
    installation.stop().await
}
