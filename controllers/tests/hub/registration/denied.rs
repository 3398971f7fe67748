//! Denial ends all streams through a cluster's tunnel at once, and none looks as if it were
//! complete. After acceptance they all work again.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hub_tests::http::Client;
use hub_tests::kubectl::{Kubectl, Running};
use hub_tests::testbed::{Route, Testbed};
use hub_tests::wait;
use hyper::body::Bytes;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::acceptance::work;
use super::joining::Member;
use super::{accept, exists, managed};
use crate::fixture::{SOON, apply, print};

/// Half of them go through the hub, half to the gateway directly.
const WATCHES: usize = 100;
/// Time from a denial to the last byte.
const NO_BYTE_AFTER: Duration = Duration::from_secs(1);
/// Before a denial, each stream had its last byte within this time: it did not end by itself.
const ALIVE_WITHIN: Duration = Duration::from_secs(1);
/// Time from a denial to the end of all streams and links.
const ENDED_AFTER: Duration = Duration::from_secs(5);
/// Between two lines of a log, and between two changes of the watched object.
const PACE: Duration = Duration::from_millis(50);
const MAP: &str = "changing";

/// The namespace, in which the pod `talker` runs, and its caller.
pub struct Place<'a> {
    pub testbed: &'a Testbed,
    pub name: &'static str,
    pub caller: &'a Kubectl,
    pub token: &'a str,
}

/// The open streams of a caller. Each returns when its last byte came, or an error if it looks
/// complete.
struct Streams<'s> {
    kubectls: Vec<ScopedJoinHandle<'s, Result<Instant>>>,
    runtime: Runtime,
    watches: JoinSet<Result<Instant>>,
}

// === impl Place ===

impl Place<'_> {
    pub fn no_and_yes(&self, member: &Member<'_>) -> Result<()> {
        let member_kubectl = self.testbed.member.server.kubectl();
        member_kubectl.ok(&format!("create configmap {MAP} -n {}", self.name))?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let busy = [scope.spawn(|| self.talk(&is_over)), scope.spawn(|| self.change(&is_over))];
            let outcome = wait::timely("the last byte after a no", NO_BYTE_AFTER, || self.denied(scope, member));
            // After the last acceptance, all of it works again.
            let again = outcome.and_then(|()| begun(self).map(drop));
            is_over.store(true, Ordering::Relaxed);
            for thread in busy {
                thread.join().map_err(|_| anyhow!("it panicked"))??;
            }
            again
        })
    }

    /// The same for a deletion that waits for a work. With a new object of the same name and its
    /// acceptance, all of it works again.
    pub fn deletion(&self, member: &Member<'_>) -> Result<()> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let busy = [scope.spawn(|| self.talk(&is_over)), scope.spawn(|| self.change(&is_over))];
            let outcome = wait::timely("the last byte after a deletion", NO_BYTE_AFTER, || self.deleted(scope, member));
            is_over.store(true, Ordering::Relaxed);
            for thread in busy {
                thread.join().map_err(|_| anyhow!("it panicked"))??;
            }
            outcome
        })
    }

    fn deleted<'s>(&self, scope: &'s Scope<'s, '_>, member: &Member<'_>) -> Result<Duration> {
        let server = &self.testbed.hub.server;
        apply(self.testbed, &[work(self.name)])?;
        let object = format!("managedcluster {}", self.name);
        let bytes = self.ended_by(scope, member, || server.delete(&format!("{object} --wait=false")))?;
        ensure!(exists(self.testbed, &object)?, "it went before its work");
        let free = json!({"metadata": {"finalizers": null}});
        server.patch(&format!("manifestwork w -n {}", self.name), &free)?;
        wait::until_true("its end", SOON, || Ok(!exists(self.testbed, &object)?))?;
        apply(self.testbed, &[managed(self.name)])?;
        accept(self.testbed, self.name, true)?;
        member.wait_linked()?;
        self.answers()?;
        Ok(bytes)
    }

    /// Denies the cluster; returns the time until the last byte.
    fn denied<'s>(&self, scope: &'s Scope<'s, '_>, member: &Member<'_>) -> Result<Duration> {
        let bytes = self.ended_by(scope, member, || accept(self.testbed, self.name, false))?;
        accept(self.testbed, self.name, true)?;
        member.wait_linked()?;
        self.answers()?;
        Ok(bytes)
    }

    /// Runs `act`; returns the time until the last byte of all open streams.
    fn ended_by<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
        member: &Member<'_>,
        act: impl FnOnce() -> Result<()>,
    ) -> Result<Duration> {
        let streams = Streams::open(scope, self)?;
        let before = Instant::now();
        act()?;
        let said = Instant::now();
        let (first, last) = streams.ended()?;
        let all = said.elapsed();
        let early = before.saturating_duration_since(first);
        ensure!(early < ALIVE_WITHIN, "a stream had its last byte {early:?} before the no");
        wait::until_true("the links' end", ENDED_AFTER, || Ok(!member.is_linked()))?;
        let links = said.elapsed();
        let bytes = last.saturating_duration_since(said);
        print(&format!("after a no: the last byte {bytes:.2?}, the streams' end {all:.2?}, the links' {links:.2?}"));
        ensure!(links < ENDED_AFTER, "it took {links:?}");
        let refused = self.caller.args(["get", "pods", "-n", self.name]).run()?;
        ensure!(refused.success().is_err(), "it is reached after a no");
        Ok(bytes)
    }

    /// kubectl to the hub, through the gateway, the tunnel-server and the agent.
    pub fn answers(&self) -> Result<()> {
        wait::until("the member's answer", 3 * SOON, || {
            let pods = self.caller.ok(&format!("get pods -n {} -o name", self.name))?;
            ensure!(pods.contains("pod/talker"), "{pods}");
            Ok(())
        })
    }

    /// Writes a log until `is_over`.
    fn talk(&self, is_over: &AtomicBool) -> Result<()> {
        let log = self.testbed.member.container(self.name, "talker").join("main.log");
        let mut file = OpenOptions::new().append(true).open(log)?;
        while !is_over.load(Ordering::Relaxed) {
            writeln!(file, "line")?;
            std::thread::park_timeout(PACE);
        }
        Ok(())
    }

    /// Changes the watched object until `is_over`.
    fn change(&self, is_over: &AtomicBool) -> Result<()> {
        let server = &self.testbed.member.server;
        let mut connection = server.client(Some(server.admin())).keep()?;
        let path = format!("/api/v1/namespaces/{}/configmaps/{MAP}", self.name);
        for number in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let patch = Bytes::from(format!(r#"{{"data":{{"number":"{number}"}}}}"#));
            let headers = [("content-type", "application/merge-patch+json")];
            connection.send(&Method::PATCH, &path, &headers, patch)?.expect(StatusCode::OK)?;
            std::thread::park_timeout(PACE);
        }
        Ok(())
    }
}

// === impl Streams ===

impl<'s> Streams<'s> {
    fn open(scope: &'s Scope<'s, '_>, place: &Place<'_>) -> Result<Self> {
        let (started, runtime, watches) = begun(place)?;
        // kubectl exits with 0 from a watch whenever its bytes end; the watches below check how
        // they end.
        let of_code = started.into_iter().zip([true, true, false]);
        let kubectls = of_code.map(|(kubectl, is_told)| scope.spawn(move || last_line(kubectl, is_told))).collect();
        Ok(Self { kubectls, runtime, watches })
    }

    /// Waits for the end of all streams. Returns the earliest and the latest time of their last
    /// bytes.
    fn ended(self) -> Result<(Instant, Instant)> {
        let Self { kubectls, runtime, watches } = self;
        let all = async { timeout(ENDED_AFTER, watches.join_all()).await };
        let ended = runtime.block_on(all).context("watches go on")?;
        let ended =
            ended.into_iter().chain(kubectls.into_iter().map(|it| it.join().map_err(|_| anyhow!("it panicked"))?));
        let ended: Vec<Instant> = ended.collect::<Result<_>>()?;
        ended.iter().min().copied().zip(ended.iter().max().copied()).context("nothing ran")
    }
}

/// Starts a log, a command and a watch of kubectl, and further watches. All carry bytes when this
/// returns, and end when they are dropped.
fn begun(place: &Place<'_>) -> Result<(Vec<Running>, Runtime, JoinSet<Result<Instant>>)> {
    let name = place.name;
    let script = "while echo tick; do sleep 0.05; done";
    let log = ["logs", "-f", "--tail=1", "talker", "-n", name];
    let exec = ["exec", "talker", "-n", name, "--", "sh", "-c", script];
    let watch = ["get", "configmaps", "-n", name, "--watch", "--no-headers"];
    let started: Result<Vec<Running>> =
        [&log[..], &exec, &watch].into_iter().map(|words| place.caller.args(words.iter().copied()).start()).collect();
    let mut started = started?;
    for kubectl in &mut started {
        kubectl.next_line(SOON)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let watches = runtime.block_on(watches(place))?;
    Ok((started, runtime, watches))
}

/// When the last line of a kubectl came, which must fail after it if `is_told`.
fn last_line(mut kubectl: Running, is_told: bool) -> Result<Instant> {
    let mut last = Instant::now();
    while kubectl.next_line(ENDED_AFTER).is_ok() {
        last = Instant::now();
    }
    let code = kubectl.wait(ENDED_AFTER)?;
    ensure!(code != 0 || !is_told, "what was cut off looks finished");
    Ok(last)
}

/// Starts the watches; each has had an event when this returns.
async fn watches(place: &Place<'_>) -> Result<JoinSet<Result<Instant>>> {
    let path = format!("{}/api/v1/namespaces/{}/configmaps?watch=1", Testbed::proxy_path(place.name), place.name);
    let (begun, mut begins) = mpsc::channel(WATCHES);
    let mut all = JoinSet::new();
    for number in 0..WATCHES {
        let route = if number % 2 == 0 { Route::Hub } else { Route::Gateway };
        let (client, token) = (place.testbed.client(route), place.token.to_owned());
        all.spawn(watch(client, path.clone(), token, begun.clone()));
    }
    for _ in 0..WATCHES {
        let next = timeout(SOON, begins.recv()).await.context("a watch without an event")?;
        next.context("a watch ended")?;
    }
    Ok(all)
}

/// Watches until the stream is reset; returns when the last event came.
async fn watch(client: Client, path: String, token: String, begun: mpsc::Sender<()>) -> Result<Instant> {
    let mut response = client.open(&path, &[("authorization", &format!("Bearer {token}"))]).await?;
    ensure!(response.status() == StatusCode::OK, "{}", response.status());
    let mut last = None;
    while let Some(frame) = response.frame().await {
        if frame.is_err() {
            return last.context("a watch without an event");
        }
        if last.replace(Instant::now()).is_none() {
            begun.send(()).await?;
        }
    }
    Err(anyhow!("a watch that was cut off looks finished"))
}
