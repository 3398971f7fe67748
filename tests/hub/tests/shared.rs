//! All users share the hub's connection to the gateway and the gateway's to the member. Requests
//! that one user starts and cancels, however often and fast, end no stream of another.

use std::io::Write as _;

use hub_tests::http::Client;
use hub_tests::kubectl::Running;
use hub_tests::prelude::*;
use hub_tests::testbed::ALL_VERBS;
use libtest_mimic::Trial;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

/// The limit for what takes a second, such as a kubectl's first line: a stream that ends is seen at
/// once.
const LIMIT: Duration = Duration::from_mins(1);
/// Requests of one wave: fewer than the concurrent ones that a kube-apiserver allows a client.
const WAVE: usize = 200;
/// A cancelled request lives this long, and up to four times that: long enough to reach the member,
/// but not for its answer.
const PATIENCE: Duration = Duration::from_millis(10);
/// Concurrent connections of the attacker, and of the victim: each core of the gateway has its own.
const CONNECTIONS: usize = 4;
/// How often each connection is opened and used.
const ROUNDS: usize = 15;
/// The same for waves: fewer, because the member answers each of their requests.
const WAVES: usize = 6;

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for route in Route::PROXIED {
        let name = format!("shared::waves of cancelled requests via {} end no stream of others", route.name());
        trials.push(test(fixture, name, move |testbed| cancelled(testbed, route)));
    }
    trials.extend([
        test(fixture, "shared::early resets of a user without rights end no stream of others", taken_back),
        test(fixture, "shared::a CONNECT with a body ends no stream of others", connect),
    ]);
    trials
}

/// Watches and followed logs of a well-behaved user.
struct Victim<'a> {
    testbed: &'a Testbed,
    route: Route,
    namespace: String,
    watches: Vec<Running>,
    logs: Vec<Running>,
}

// === impl Victim ===

impl<'a> Victim<'a> {
    fn start(testbed: &'a Testbed, route: Route, name: &str) -> Result<Self> {
        let namespace = format!("shared-{name}-{}", route.name());
        testbed.member.server.create_namespace(&namespace)?;
        testbed.member.run_pod(&namespace, "talker", "before\n")?;
        testbed.member.server.kubectl().ok(&format!("create configmap before -n {namespace}"))?;
        let mut victim = Self { testbed, route, namespace, watches: Vec::new(), logs: Vec::new() };
        for _ in 0..CONNECTIONS {
            let mut log = victim.start_one("logs -f talker")?;
            ensure!(log.next_line(LIMIT)? == "before");
            let watch = victim.start_one("get configmaps --field-selector=metadata.name=seen -w -o name")?;
            victim.logs.push(log);
            victim.watches.push(watch);
        }
        testbed.member.server.kubectl().ok(&format!("create configmap seen -n {}", victim.namespace))?;
        victim.sees("configmap/seen")?;
        Ok(victim)
    }

    fn start_one(&self, words: &str) -> Result<Running> {
        let words = format!("{words} -n {}", self.namespace);
        self.testbed.kubectl(self.route).args(words.split(' ')).start()
    }

    fn sees(&mut self, line: &str) -> Result<()> {
        for watch in &mut self.watches {
            let seen = watch.next_line(LIMIT).context("a watch")?;
            ensure!(seen == line, "{seen:?}");
        }
        Ok(())
    }

    /// Checks that new changes arrive on all of them.
    fn goes_on(mut self) -> Result<()> {
        self.testbed.member.server.annotate(&format!("configmap seen attack=over -n {}", self.namespace))?;
        self.sees("configmap/seen")?;
        let log = self.testbed.member.container(&self.namespace, "talker").join("main.log");
        writeln!(std::fs::OpenOptions::new().append(true).open(log)?, "after")?;
        for follower in &mut self.logs {
            let line = follower.next_line(LIMIT).context("a followed log")?;
            ensure!(line == "after", "{line:?}");
        }
        Ok(())
    }
}

fn cancelled(testbed: &Testbed, route: Route) -> Result<()> {
    let victim = Victim::start(testbed, route, "cancelled")?;
    let path = format!("{}/openapi/v2", Testbed::proxy_path(CLUSTER));
    // A separate user: cancelled requests count against its limits, and must not count against
    // those of other tests.
    let token = testbed.hub.create_user(&format!("waver-{}", route.name()), &[], ALL_VERBS)?;
    attack(&client(testbed, route), |client| waves(client, &path, &token))?;
    victim.goes_on()
}

fn taken_back(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.server.service_account_token("default", "hasty-stranger")?;
    let victim = Victim::start(testbed, Route::Hub, "early")?;
    let gate = testbed.gateway.gate().context("the hub's way to the gateway")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for _ in 0..ROUNDS {
        // The gateway finds requests and their resets in one read, as if it had not been scheduled
        // for a moment.
        let _held = gate.hold();
        runtime.block_on(take_back(&client(testbed, Route::Hub), &token))?;
    }
    victim.goes_on()
}

fn connect(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("connector", &[], &["*"])?;
    let victim = Victim::start(testbed, Route::Hub, "connect")?;
    let head = format!(
        "CONNECT {}/api HTTP/1.1\r\nHost: hub\r\nAuthorization: {}\r\nContent-Length: 5\r\n\r\nhello",
        Testbed::proxy_path(CLUSTER),
        bearer(&token)
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for _ in 0..3 {
        let answer = runtime.block_on(async {
            let mut io = client(testbed, Route::Hub).connect().await?;
            io.write_all(head.as_bytes()).await?;
            let mut answer = [0; 64];
            let length = timeout(LIMIT, io.read(&mut answer)).await??;
            anyhow::Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
        })?;
        ensure!(answer.starts_with("HTTP/1.1 "), "{answer:?}");
    }
    victim.goes_on()
}

/// Attacks on several concurrent connections. If one is ended for that, the attacker connects
/// again.
fn attack<F: Future<Output = Result<()>>>(client: &Client, once: impl Fn(Client) -> F) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let attackers = (0..CONNECTIONS).map(|_| async {
        for number in 0..WAVES {
            if let Err(error) = once(client.clone()).await {
                tracing::debug!(number, %error, "the attacker comes again");
            }
        }
    });
    runtime.block_on(futures_util::future::join_all(attackers));
    Ok(())
}

/// Requests that are reset while the member works on them.
async fn waves(client: Client, path: &str, token: &str) -> Result<()> {
    let (connection, bearer) = (client.h2().await?, bearer(token));
    let mut sent = Vec::with_capacity(WAVE);
    for _ in 0..WAVE {
        sent.push(connection.send(Method::GET, path, &[("authorization", &bearer)], true).await?);
    }
    sleep(PATIENCE).await;
    while !sent.is_empty() {
        sent.drain(..sent.len().min(WAVE / 20));
        sleep(PATIENCE * 3 / 20).await;
    }
    Ok(())
}

/// Requests that every user may make, reset when the hub has forwarded them.
async fn take_back(client: &Client, token: &str) -> Result<()> {
    let (connection, bearer) = (client.h2().await?, bearer(token));
    let mut sent = Vec::with_capacity(WAVE);
    for _ in 0..WAVE {
        let path = "/apis/cluster.core.oam.dev/v1alpha1";
        sent.push(connection.send(Method::GET, path, &[("authorization", &bearer)], true).await?);
    }
    // There is no sign that the hub has forwarded them; by now it either has, or never will.
    sleep(PATIENCE * 10).await;
    drop(sent);
    sleep(PATIENCE * 10).await;
    Ok(())
}
