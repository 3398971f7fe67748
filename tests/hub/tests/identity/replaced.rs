//! The hub's own identity is replaced as an operator would do it: another CA for its front proxy,
//! another certificate, and the old ones no longer trusted.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use hub_tests::hub::FRONT_PROXY;
use hub_tests::prelude::*;
use kit::pki::{Authority, Issued};

use super::{FORGED, front_proxy_leaf};
use crate::access::{bearer, client, marked};

/// The ConfigMap in which the hub publishes what aggregated API servers must trust.
const MAP: &str = "extension-apiserver-authentication";
/// kube-apiserver checks its files every minute if it gets no notice of a change
/// (`FileRefreshDuration` in `k8s.io/apiserver/pkg/server/dynamiccertificates`).
const FOLLOWED: Duration = Duration::from_secs(90);
/// Requests after each change; their connections may be older.
const AFTERWARDS: usize = 50;
/// Pause between two requests, each with a connection of its own: some forty a second meet each
/// step of the change, and leave the machine to others.
const PAUSE: Duration = Duration::from_millis(20);

/// The CA, and its certificate.
type Identity<'a> = (&'a Authority, &'a Issued);

/// Requests through the hub continue all the time, and none of them fails.
pub(super) fn replaced(testbed: &Testbed) -> Result<()> {
    let old = (&testbed.hub.front_proxy_authority, &testbed.hub.front_proxy);
    let authority = Authority::new("front-proxy-ca-2");
    let issued = authority.issue(&front_proxy_leaf());
    let new = (&authority, &issued);
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let asked = scope.spawn(|| ask(testbed, &is_over, &answered));
        let moved = [(old, new), (new, old)].into_iter().try_for_each(|(from, to)| {
            hand_over(testbed, from, to)?;
            let before = answered.load(Ordering::Relaxed);
            wait::until_true("requests afterwards", FOLLOWED, || {
                Ok(asked.is_finished() || answered.load(Ordering::Relaxed) > before + AFTERWARDS)
            })
        });
        is_over.store(true, Ordering::Relaxed);
        asked.join().map_err(|_| anyhow!("the requests panicked"))??;
        moved
    })
}

/// Sends requests until `is_over` or a failure.
fn ask(testbed: &Testbed, is_over: &AtomicBool, answered: &AtomicUsize) -> Result<()> {
    let (hub, authorization) = (client(testbed, Route::Hub), bearer(&testbed.token));
    while !is_over.load(Ordering::Relaxed) {
        let response = hub.get(&marked(CLUSTER, "default"), &[("authorization", &authorization)])?;
        response.expect(StatusCode::OK)?;
        answered.fetch_add(1, Ordering::Relaxed);
        thread::park_timeout(PAUSE);
    }
    Ok(())
}

fn hand_over(testbed: &Testbed, from: Identity<'_>, to: Identity<'_>) -> Result<()> {
    let directory = &testbed.launcher().directory;
    let trusted = |pem: String| fs::write(directory.join("front-proxy-ca.crt"), pem).map_err(anyhow::Error::from);
    trusted(from.0.root_pem() + &to.0.root_pem())?;
    wait::until("trust in both authorities", FOLLOWED, || answered(testbed, to.1, StatusCode::OK))?;

    let before = loaded(testbed)?;
    to.1.write_to(directory, FRONT_PROXY)?;
    wait::until_true("the hub's new certificate", FOLLOWED, || Ok(loaded(testbed)? > before))?;

    trusted(to.0.root_pem())?;
    let change = json!({"data": {"requestheader-client-ca-file": to.0.root_pem()}});
    wait::until("no more trust in the old authority", FOLLOWED, || {
        // The hub adds its file's content to the ConfigMap, and never removes any.
        testbed.hub.server.patch(&format!("configmap {MAP} -n kube-system"), &change)?;
        // As with any untrusted certificate: the name is not believed, and there is no anonymous
        // user.
        answered(testbed, from.1, StatusCode::UNAUTHORIZED)
    })
}

/// Checks the gateway's answer to a certificate together with a name, as the hub sends it.
fn answered(testbed: &Testbed, certificate: &Issued, expected: StatusCode) -> Result<()> {
    let response = testbed.gateway.client(Some(certificate)).get(&marked(CLUSTER, "default"), &FORGED)?;
    response.expect(expected).map(drop)
}

/// How often the hub has loaded another certificate for its front proxy.
fn loaded(testbed: &Testbed) -> Result<usize> {
    let log = fs::read_to_string(testbed.launcher().file("hub-apiserver.log"))?;
    let is_told = |line: &&str| line.contains("Loaded a new cert/key pair") && line.contains("aggregator-proxy-cert");
    Ok(log.lines().filter(is_told).count())
}
