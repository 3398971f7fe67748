//! A kubeconfig is rewritten under load: no request fails, and no credential goes to another
//! endpoint than its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hub_tests::http::Kept;
use hub_tests::testbed::{Route, Testbed};
use hub_tests::wait;
use hyper::body::Bytes;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::others::Moment;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::CLUSTERS;
use crate::fixture::{SOON, apply, kubeconfig, kubeconfig_secret, namespace, print, wait_gone};

const FLEET: &str = "fleet-load";
const NAME: &str = "load";
/// Callers on each route.
const CALLERS: usize = 4;
const ROUTES: [Route; 2] = [Route::Hub, Route::Gateway];
/// Requests with each credential before the next rewrite.
const REQUESTS: usize = 200;

/// Requests per second of all callers on an otherwise idle machine: a ninth of what two busy cores
/// reach.
const LEAST_RATE: f64 = 200.0;

struct Load<'a> {
    testbed: &'a Testbed,
    authorization: String,
    stop: AtomicBool,
    /// The state of the machine when the load began.
    machine: Moment,
    /// Answers on each route.
    answers: [AtomicUsize; 2],
}

/// Requires running controllers that read kubeconfig Secrets.
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
    let authorization = format!("Bearer {}", testbed.hub.create_user("rotation-caller", &[NAME], &["*"])?);
    let (stop, answers) = (AtomicBool::new(false), Default::default());
    let load = Load { testbed, authorization, stop, machine: Moment::now()?, answers };
    for route in ROUTES {
        wait::until("the first answer", SOON, || load.ask(&mut testbed.client(route).keep()?))?;
    }
    let with = |member: &FakeMember, credential: Option<&str>| {
        let expected = credential.map(|token| format!("Bearer {token}"));
        member.requests().iter().filter(|request| request.header("authorization") == expected.as_deref()).count()
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let load = &load;
        let callers: Vec<_> =
            (0..CALLERS * ROUTES.len()).map(|number| scope.spawn(move || load.run(number % ROUTES.len()))).collect();
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
            enough(&second, Some("three"))?;
            // On a busy machine, one route is several times as slow as the other.
            wait::until("answers by each route", SOON, || load.is_on_each_route())
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
    load.was_heavy(began.elapsed())?;
    testbed.hub.server.delete(&format!("secret {NAME} -n {FLEET}"))?;
    wait_gone(testbed, CLUSTERS, NAME)
}

// === impl Load ===

impl Load<'_> {
    fn ask(&self, connection: &mut Kept) -> Result<()> {
        let headers = [("authorization", self.authorization.as_str())];
        let response = connection.send(&Method::GET, &path(), &headers, Bytes::new())?;
        response.expect(StatusCode::OK).map(drop)
    }

    /// Sends requests on one connection until `stop`.
    fn run(&self, route: usize) -> Result<()> {
        let mut connection = self.testbed.client(ROUTES[route]).keep()?;
        while !self.stop.load(Ordering::Relaxed) {
            let answer = self.ask(&mut connection);
            answer.with_context(|| format!("by {:?} while the kubeconfig is rewritten", ROUTES[route]))?;
            self.answers[route].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// An error unless each route has answered as many requests as each credential must have.
    fn is_on_each_route(&self) -> Result<()> {
        let answers = self.answered();
        ensure!(answers.iter().all(|answers| *answers >= REQUESTS), "{answers:?}");
        Ok(())
    }

    fn answered(&self) -> [usize; 2] {
        self.answers.each_ref().map(|answers| answers.load(Ordering::Relaxed))
    }

    fn was_heavy(&self, took: Duration) -> Result<()> {
        let answers = self.answered();
        let rate = f64::from(u32::try_from(answers.iter().sum::<usize>())?) / took.as_secs_f64();
        print(&format!("while a kubeconfig is rewritten: {answers:?} answers by {ROUTES:?}, {rate:.0} a second"));
        let others = self.machine.others()?;
        let least = LEAST_RATE * (1.0 - others).powi(2);
        ensure!(rate >= least, "{rate:.0} requests a second, not {least:.0}: others took {others:.2} of the machine");
        Ok(())
    }
}

/// The path of a list on the member.
fn path() -> String {
    format!("{}/api/v1/namespaces", Testbed::proxy_path(NAME))
}
