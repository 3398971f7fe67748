//! The demo on real control planes as its user meets it: every step passes, and nothing is left
//! behind.
//!
//! The first run builds the control planes from Go modules, as the tests of the hub do.

use std::{net::TcpStream, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use demo::report::Tally;
use demo_real::{Real, RealReport, Step};
use hub_tests::wait;

const END_PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn every_step_passes_and_nothing_is_left_behind() -> Result<()> {
    let real = Real::start()?;
    let mut text = Vec::new();
    let mut report = RealReport::new(&mut text);
    report.arrangement(&real)?;
    let tally = report.steps(&real, || false)?;
    report.invite(&real)?;
    let text = String::from_utf8(text)?;

    assert_eq!(tally, Tally { run: Step::ALL.len(), failed: 0 }, "{text}");
    for secret in [&real.testbed.token, &real.testbed.member_token] {
        assert!(!text.contains(secret.as_str()), "a token is printed");
    }
    let invited =
        text.lines().find_map(|line| line.trim().strip_prefix("export KUBECONFIG=")).context("no kubeconfig")?;
    assert_eq!(std::fs::metadata(invited)?.permissions().mode() & 0o777, 0o600);
    let (hub, log) = (real.testbed.hub.server.address(), real.log());
    drop(real);
    assert!(!log.exists() && !Path::new(invited).exists(), "files are left");
    // The sockets of a large process go a moment after it was waited for.
    wait::until_true("the hub's end", END_PATIENCE, || Ok(TcpStream::connect(hub).is_err()))
}
