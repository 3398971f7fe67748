//! A watch that cannot be resumed: gateway and hub were down, and the hub no longer knows the
//! changes since the clients' resource version. It answers 410, and they start over.
//!
//! A kube-apiserver keeps the changes of at least the last 75 s in memory (`watch_cache.go`,
//! `eventFreshDuration`), but only of its own lifetime: after a restart everything older than its
//! first list has expired. So this test has its own hub.

use hub_tests::control_plane::ApiServer;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::prelude::*;
use hub_tests::product::Product;

use super::churn::Churn;
use super::crew::Crew;

const NAME: &str = "forgetful";
/// A client that meets another failure than a refused connection while it tries to resume starts
/// over without a 410: it gets another chance.
const OUTAGES: usize = 3;
/// The clients back off while nothing answers, up to 30 s between two attempts in the worst case.
const LIMIT: Duration = Duration::from_mins(1);
const CHANGES: usize = 25;

pub(super) fn expired(testbed: &Testbed) -> Result<()> {
    let mut hub = testbed.start_api_server(NAME)?;
    hub.wait_ready()?;
    let admin = hub.kubectl().kubeconfig;
    hub.kubectl().ok(&format!("create namespace {SECRET_NAMESPACE}"))?;
    let gateway = testbed.start_gateway("forgetful-gateway", &admin, &[])?;
    let files = hub.admin().write_to(&testbed.directory(NAME)?, "operator")?;
    let (server, authority) = (format!("https://{}", gateway.address()), gateway.authority_file());
    let kubeconfig = Kubeconfig { server, authority, credential: Credential::Certificate(files) };
    let kubeconfig = kubeconfig.write(testbed.directory(NAME)?.join("operator.kubeconfig"))?;

    let mut churn = Churn::new(&admin, "lapsed")?;
    churn.change(CHANGES)?;
    let mut crew = Crew::default();
    crew.join(testbed, NAME, &kubeconfig)?;
    crew.equal(&churn, LIMIT)?;
    for _ in 0..OUTAGES {
        outage(&mut hub, &gateway, &mut churn, &mut crew)?;
        if crew.reports()?.iter().all(|(_, report)| report.expired > 0) {
            break;
        }
    }
    for (name, report) in crew.reports()? {
        ensure!(report.expired > 0, "{name} was never told that its version has expired: {report:?}");
    }
    for (name, follower) in crew.followers() {
        let (starts, expired) = (follower.starts(), follower.expired());
        ensure!(starts > 1 && expired > 0, "{name} began {starts} times, told {expired} times that it has expired");
    }
    // New changes arrive by a watch again.
    churn.change(CHANGES)?;
    crew.equal(&churn, LIMIT)?;

    // Only the hub goes down and comes back: the gateway finds it again, and so do the watches
    // through it.
    let _in_use = gateway.in_use();
    hub.stop()?;
    hub.start_again()?;
    hub.wait_ready()?;
    churn.change(CHANGES)?;
    crew.equal(&churn, LIMIT)
}

/// Gateway and hub are down while something changes.
fn outage(hub: &mut ApiServer, gateway: &Product, churn: &mut Churn, crew: &mut Crew) -> Result<()> {
    // After a watch of less than a second without an event, client-go starts over without trying to
    // resume.
    churn.change(CHANGES)?;
    crew.equal(churn, LIMIT)?;
    gateway.restart(|| {
        churn.change(CHANGES)?;
        hub.stop()?;
        hub.start_again()?;
        hub.wait_ready()
    })?;
    crew.equal(churn, LIMIT)
}
