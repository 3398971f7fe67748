//! A kubeconfig is rewritten while requests come in: none fails, none is sent to where its
//! credential does not belong.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use kit::member::{FakeMember, MemberOptions, Reply};
use serde_json::{Value, json};

use super::CLUSTERS;
use crate::fixture::{SOON, apply, kubeconfig, kubeconfig_secret, namespace, wait_gone};

const FLEET: &str = "fleet-load";
const NAME: &str = "load";
const CALLERS: usize = 4;
/// With each credential, before the next.
const REQUESTS: usize = 200;

struct Load<'a> {
    testbed: &'a Testbed,
    stop: AtomicBool,
    answers: AtomicUsize,
}

/// The controllers of Secrets with kubeconfigs run.
pub fn under_load(testbed: &Testbed) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let [first, second] = [(), ()].map(|()| runtime.block_on(FakeMember::start(MemberOptions::default())));
    for member in [&first, &second] {
        member.on_any(|_| Reply::json(200, &json!({"kind": "Status", "status": "Success"})));
    }
    let key = testbed.member.server.admin();
    let certificate = json!({"client-certificate-data": STANDARD.encode(&key.certificate_pem),
        "client-key-data": STANDARD.encode(&key.key_pem)});
    let rewrite = |member: &FakeMember, user: &Value| -> Result<()> {
        apply(testbed, &[kubeconfig_secret(FLEET, NAME, &kubeconfig(&member.url(), member.ca_pem().as_bytes(), user))])
    };
    apply(testbed, &[namespace(FLEET)])?;
    rewrite(&first, &json!({"token": "one"}))?;
    let load = Load { testbed, stop: AtomicBool::new(false), answers: AtomicUsize::new(0) };
    wait::until("the first answer", SOON, || load.caller()?.get(&path())?.expect(http::StatusCode::OK))?;
    let with = |member: &FakeMember, credential: Option<&str>| {
        let expected = credential.map(|token| format!("Bearer {token}"));
        member.requests().iter().filter(|request| request.header("authorization") == expected.as_deref()).count()
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(|| load.run())).collect();
        let turns = || -> Result<()> {
            let enough = |member: &FakeMember, credential: Option<&str>| {
                let before = with(member, credential);
                wait::until_true("requests with that credential", SOON, || {
                    Ok(with(member, credential) >= before + REQUESTS)
                })
            };
            enough(&first, Some("one"))?;
            let connections = first.connections_accepted();
            rewrite(&first, &json!({"token": "two"}))?;
            enough(&first, Some("two"))?;
            ensure!(first.connections_accepted() == connections, "another token alone ended connections");
            rewrite(&first, &certificate)?;
            enough(&first, None)?;
            rewrite(&second, &json!({"token": "three"}))?;
            enough(&second, Some("three"))
        };
        let outcome = turns();
        load.stop.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.join().expect("no panic")?;
        }
        outcome
    })?;
    ensure!(with(&first, Some("three")) == 0, "the new credential went to the old endpoint");
    let all = second.request_count();
    ensure!(with(&second, Some("three")) == all, "an old credential went to the new endpoint");
    ensure!(load.answers.load(Ordering::Relaxed) >= 4 * REQUESTS, "no load");
    testbed.hub.server.delete(&format!("secret {NAME} -n {FLEET}"))?;
    wait_gone(testbed, CLUSTERS, NAME)
}

// === impl Load ===

impl Load<'_> {
    /// The hub's administrator, on one connection.
    fn caller(&self) -> Result<hub_tests::http::Kept> {
        let server = &self.testbed.hub.server;
        server.client(Some(server.admin())).keep()
    }

    fn run(&self) -> Result<()> {
        let (mut caller, path) = (self.caller()?, path());
        while !self.stop.load(Ordering::Relaxed) {
            let response = caller.get(&path).context("a request while the kubeconfig is rewritten")?;
            response.expect(http::StatusCode::OK).context("while the kubeconfig is rewritten")?;
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Of a list on the member.
fn path() -> String {
    format!("{}/api/v1/namespaces", Testbed::proxy_path(NAME))
}
