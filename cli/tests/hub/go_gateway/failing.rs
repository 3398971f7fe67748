//! This gateway takes the place of the Go one. Then the hops before a member fail, one after the
//! other, and `probe` names each.

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::ports;
use hub_tests::product::Product;

use super::{GoHub, available};
use crate::fixture::ended;

pub fn probed(go: GoHub<'_>) -> Result<()> {
    let (program, testbed) = (go.program(), go.testbed);
    let probe = |code: i32, good: &[&str], hop: &str, cause: &str, remedy: &str| -> Result<()> {
        let told = ended(&program, "probe lund", code)?;
        let signs: Vec<_> = told.stdout.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
        let expected: Vec<_> = good.iter().map(|hop| format!("✓ {hop}")).chain([format!("✗ {hop}")]).collect();
        ensure!(signs.iter().map(|sign| sign.trim()).eq(expected.iter()), "{expected:?}: {told:?}");
        let lines: Vec<_> = told.stderr.lines().collect();
        ensure!(lines.len() == 2, "{told:?}");
        ensure!(
            lines[0].starts_with(&format!("error: the path to lund fails at the {hop}: ")) && lines[0].contains(cause),
            "{told:?}"
        );
        ensure!(lines[1].starts_with("remedy: ") && lines[1].contains(remedy), "{told:?}");
        Ok(())
    };
    drop(go.gateway);
    // Nothing listens where its tunnel-server should be.
    let flags = ["--proxy-host=127.0.0.1".to_owned(), format!("--proxy-port={}", ports::free()?)];
    let kubeconfig = go.hub.gateway_kubeconfig();
    let gateway = Product::start_unregistered(&go.launcher, "swapped-gateway", &kubeconfig, &flags)?;
    go.hub.register_gateway(gateway.address().port(), gateway.authority())?;
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).behind_tunnel();
    go.hub.register_member("lund", &member)?;
    available(&go.hub).context("the hub and the gateway in its place")?;
    let before = ["hub", "gateway", "registration"];
    let why = "cannot reach any tunnel-server: dial tcp 127.0.0.1:";
    probe(1, &before, "tunnel-server", why, "the tunnel-server's pods run")?;
    drop(gateway);
    probe(1, &before[..1], "gateway", ": 503: ", "`kubectl get apiservice v1alpha1.cluster.core.oam.dev`")?;
    drop(go.hub);
    probe(3, &[], "hub", "connection re", "it answers `kubectl version`")
}
