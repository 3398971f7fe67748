//! Steps of the demo, each with a real request through the gateway and a checked answer.
//!
//! A step that passes returns the sentence to show; one that fails returns the reason. Steps are
//! ordered, because the third cluster has to come before it can go.

use std::{io, sync::Arc, time::Duration};

use http::{Method, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::{
    agent::Lifeline,
    client::{Answer, Client, ClientError},
    manifests::Manifests,
    member::Member,
    workload::{self, Moves, Workload},
};

/// The gateway's path of its clusters.
pub const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";

/// How long a watch may stay silent: a sample pod changes every two seconds.
const EVENT_PATIENCE: Duration = Duration::from_secs(6);
/// How long a followed log may stay silent: it has a line each second.
const LINE_PATIENCE: Duration = Duration::from_secs(4);
/// Lines that have to arrive one by one.
const LINES: u32 = 3;
/// The least time from the first to the last of them; buffered, they would come together.
const MIN_SPREAD: Duration = Duration::from_secs(1);
/// How soon a manifest, or an agent's end or start, has to take effect. Usually a quarter of a
/// second; a busy machine has been seen to take a whole one.
const ROLLOUT: Duration = Duration::from_secs(2);
/// How soon a cluster that was lost has to answer again: the gateway pauses between dials that
/// fail.
const BACK: Duration = Duration::from_secs(10);
/// How often its effect is looked for.
const ROLLOUT_POLL: Duration = Duration::from_millis(25);

/// Everything the steps work with.
#[derive(Debug)]
pub struct Tour {
    /// A connection to the gateway.
    pub client: Client,
    /// An identity that may do everything.
    pub admin: SecretString,
    /// An identity that may do nothing.
    pub stranger: SecretString,
    /// The members that are there from the start, at least one. Only an agent reaches the last of
    /// them.
    pub members: Vec<Member>,
    /// The agent of the last member.
    pub lifeline: Arc<Lifeline>,
    /// The member that comes and goes.
    pub guest: Member,
    /// The gateway's clusters.
    pub manifests: Manifests,
    /// The workload on two of them.
    pub workload: Workload,
}

/// One thing to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The gateway lists its clusters.
    Clusters,
    /// Each cluster answers with its own pods.
    Pods,
    /// A cluster that does not exist.
    Unknown,
    /// A watch delivers an event.
    Watch,
    /// A followed log grows line by line.
    Log,
    /// A cluster without an address answers through its agent.
    Tunnel,
    /// The agent dies.
    Cut,
    /// The agent is started again.
    Restored,
    /// An identity without rights.
    Stranger,
    /// A cluster joins while the gateway runs.
    Join,
    /// A workload goes to two of three clusters.
    Place,
    /// One of them is killed: it goes to the third.
    Lose,
    /// The lost one is back.
    Return,
    /// The cluster leaves again.
    Leave,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A manifest could not be written or removed.
    #[error("cannot change the manifests: {0}")]
    Manifest(#[from] io::Error),
    /// The agent did not come back.
    #[error("{0:#}")]
    Agent(anyhow::Error),
    /// An answer came, but not the right one.
    #[error("{0}")]
    Unexpected(String),
}

/// The path of `rest` (which starts with `/`) on a member, through the gateway.
pub fn through(cluster: &str, rest: &str) -> String {
    format!("{CLUSTERS}/{cluster}/proxy{rest}")
}

// === impl Step ===

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 14] = [
        Self::Clusters,
        Self::Pods,
        Self::Unknown,
        Self::Watch,
        Self::Log,
        Self::Tunnel,
        Self::Cut,
        Self::Restored,
        Self::Stranger,
        Self::Join,
        Self::Place,
        Self::Lose,
        Self::Return,
        Self::Leave,
    ];

    /// Title of the step, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Clusters => "list the clusters",
            Self::Pods => "list the pods of each cluster",
            Self::Unknown => "request a cluster that does not exist",
            Self::Watch => "watch pods",
            Self::Log => "follow a log",
            Self::Tunnel => "reach a cluster through its agent",
            Self::Cut => "kill that agent",
            Self::Restored => "start the agent again",
            Self::Stranger => "send a request without rights",
            Self::Join => "add a cluster while the gateway runs",
            Self::Place => "run a workload on two of the three clusters",
            Self::Lose => "kill one of these two",
            Self::Return => "start it again",
            Self::Leave => "remove the cluster that was added",
        }
    }

    /// Runs the step; the text says what was seen.
    pub async fn run(self, tour: &Tour) -> Result<String, StepError> {
        match self {
            Self::Clusters => tour.clusters().await,
            Self::Pods => tour.pods().await,
            Self::Unknown => tour.unknown().await,
            Self::Watch => tour.watch().await,
            Self::Log => tour.log().await,
            Self::Tunnel => tour.tunnel().await,
            Self::Cut => tour.cut().await,
            Self::Restored => tour.restored().await,
            Self::Stranger => tour.stranger().await,
            Self::Join => tour.join().await,
            Self::Place => tour.place().await,
            Self::Lose => tour.lose().await,
            Self::Return => tour.come_back().await,
            Self::Leave => tour.leave().await,
        }
    }
}

// === impl Tour ===

impl Tour {
    async fn clusters(&self) -> Result<String, StepError> {
        let answer = self.get(CLUSTERS).await?;
        let names: Vec<&str> = answer.items().iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
        let expected: Vec<&str> = self.members.iter().map(Member::name).collect();
        check(names == expected, || format!("expected {expected:?}, got {names:?}: {}", answer.message()))?;
        Ok(names.join(", "))
    }

    async fn pods(&self) -> Result<String, StepError> {
        let mut seen = Vec::new();
        for member in &self.members {
            let name = member.name();
            let answer = self.get(&through(name, "/api/v1/pods")).await?;
            let pods = answer.items();
            // Nodes are named after their cluster: an answer from the wrong member shows.
            let own = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).all(|node| node.starts_with(name));
            check(!pods.is_empty() && own, || format!("not the pods of {name}: {}", answer.message()))?;
            seen.push(format!("{name} {}", pods.len()));
        }
        Ok(seen.join(", "))
    }

    async fn unknown(&self) -> Result<String, StepError> {
        let answer = self.client.get(&through("atlantis", "/api/v1/pods"), &self.admin).await?;
        Self::expect_refusal(&answer, StatusCode::NOT_FOUND)?;
        check(answer.message().contains("no such cluster"), || format!("unclear message {:?}", answer.message()))?;
        Ok(format!("404: {}", answer.message()))
    }

    async fn watch(&self) -> Result<String, StepError> {
        let name = self.first();
        let path = through(name, "/api/v1/namespaces/default/pods");
        let list = self.get(&path).await?;
        let version = list.body["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let mut watch = self.client.lines(&format!("{path}?watch=true&resourceVersion={version}"), &self.admin).await?;
        let line = watch.next(EVENT_PATIENCE).await?;
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let (kind, pod) = (event["type"].as_str(), event["object"]["metadata"]["name"].as_str());
        match (kind, pod) {
            (Some(kind), Some(pod)) => Ok(format!("{kind} {pod} on {name}")),
            _ => Err(StepError::Unexpected(format!("no event: {line}"))),
        }
    }

    async fn log(&self) -> Result<String, StepError> {
        let name = self.first();
        let pods = self.get(&through(name, "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")).await?;
        let pod = pods.items().first().and_then(|pod| pod["metadata"]["name"].as_str()).unwrap_or_default();
        let path = through(name, &format!("/api/v1/namespaces/default/pods/{pod}/log?follow=true&tailLines=1"));
        let mut log = self.client.lines(&path, &self.admin).await?;
        log.next(LINE_PATIENCE).await?;
        // From line to line, not from the request: lines that were there already say nothing about
        // streaming.
        let first = Instant::now();
        for _ in 0..LINES {
            log.next(LINE_PATIENCE).await?;
        }
        let spread = first.elapsed();
        check(spread >= MIN_SPREAD, || format!("{LINES} lines in {} ms: they were buffered", spread.as_millis()))?;
        Ok(format!("{LINES} new lines of {pod}, one by one over {:.1} s", spread.as_secs_f32()))
    }

    async fn tunnel(&self) -> Result<String, StepError> {
        let name = self.last();
        let cluster = self.get(&format!("{CLUSTERS}/{name}")).await?;
        let endpoint = &cluster.body["spec"]["access"]["endpoint"];
        check(endpoint["type"] == "ClusterProxy" && endpoint["const"].is_null(), || {
            format!("{name} has an address: {endpoint}")
        })?;
        let nodes = self.get(&through(name, "/api/v1/nodes")).await?;
        Ok(format!("{name}, which has no address here, shows {} nodes", nodes.items().len()))
    }

    async fn cut(&self) -> Result<String, StepError> {
        let (name, lifeline) = (self.last(), Arc::clone(&self.lifeline));
        // Ending it blocks for a moment, and the members run on this thread.
        drop(spawn_blocking(move || lifeline.cut()).await);
        let answer = self.until(name, StatusCode::SERVICE_UNAVAILABLE).await?.0;
        Self::expect_refusal(&answer, StatusCode::SERVICE_UNAVAILABLE)?;
        let clear = [name, "agent"].iter().all(|word| answer.message().contains(word));
        check(clear, || format!("unclear message {:?}", answer.message()))?;
        Ok(format!("503: {}", answer.message()))
    }

    async fn restored(&self) -> Result<String, StepError> {
        let (name, lifeline, started) = (self.last(), Arc::clone(&self.lifeline), Instant::now());
        let restored = spawn_blocking(move || lifeline.restore()).await;
        restored.map_err(anyhow::Error::from).flatten().map_err(StepError::Agent)?;
        self.until(name, StatusCode::OK).await?;
        Ok(format!("{name} answers 200 after {} ms", started.elapsed().as_millis()))
    }

    async fn stranger(&self) -> Result<String, StepError> {
        let answer = self.client.get(&through(self.first(), "/api/v1/pods"), &self.stranger).await?;
        Self::expect_refusal(&answer, StatusCode::FORBIDDEN)?;
        Ok(format!("403: {}", answer.message()))
    }

    async fn join(&self) -> Result<String, StepError> {
        self.manifests.add(&self.guest)?;
        self.guest_answers(StatusCode::OK).await
    }

    async fn place(&self) -> Result<String, StepError> {
        let moves = self.follow().await?;
        check(moves.come.len() == 2, || format!("it runs on {:?}", moves.chosen))?;
        Ok(format!("{} runs on {}", workload::NAME, moves.chosen.join(" and ")))
    }

    async fn lose(&self) -> Result<String, StepError> {
        let (name, started) = (self.guest.name(), Instant::now());
        self.guest.kill();
        self.until_ready(name, false, ROLLOUT).await?;
        let moves = self.follow().await?;
        let [other] = &moves.come[..] else {
            return Err(StepError::Unexpected(format!("it runs on {:?}", moves.chosen)));
        };
        check(moves.go == [name], || format!("it left {:?}", moves.go))?;
        Ok(format!("{name} is lost: {} runs on {other} after {} ms", workload::NAME, started.elapsed().as_millis()))
    }

    async fn come_back(&self) -> Result<String, StepError> {
        let (name, started) = (self.guest.name(), Instant::now());
        self.guest.restore().await;
        self.until_ready(name, true, BACK).await?;
        let moves = self.follow().await?;
        check(moves.come.is_empty() && !moves.chosen.iter().any(|chosen| chosen == name), || {
            format!("it moved again, to {:?}", moves.chosen)
        })?;
        // The pod that could not be deleted while the cluster was lost.
        self.unplace(name).await?;
        let (chosen, took) = (moves.chosen.join(" and "), started.elapsed().as_millis());
        Ok(format!("{name} is back after {took} ms, its copy is removed, {chosen} keep theirs"))
    }

    /// Chooses again, and moves the workload accordingly.
    async fn follow(&self) -> Result<Moves, StepError> {
        let clusters = self.get(CLUSTERS).await?;
        let names = clusters.items().iter().filter_map(|item| item["metadata"]["name"].as_str());
        let mut fleet = Vec::new();
        for name in names {
            fleet.push((name.to_owned(), self.is_ready(name).await?));
        }
        let moves = self.workload.choose(&fleet);
        for name in &moves.come {
            let (path, pod) = (through(name, &workload::path()), workload::pod());
            let answer = self.client.send_object(Method::PATCH, &path, &self.admin, &pod).await?;
            check(answer.status == StatusCode::OK, || format!("cannot apply it to {name}: {}", answer.message()))?;
        }
        for name in &moves.chosen {
            let pod = self.get(&through(name, &workload::path())).await?;
            check(pod.body["status"]["phase"] == "Running", || format!("it does not run on {name}: {}", pod.body))?;
        }
        Ok(moves)
    }

    async fn unplace(&self, name: &str) -> Result<(), StepError> {
        let path = through(name, &workload::path());
        let answer = self.client.send_object(Method::DELETE, &path, &self.admin, &Value::Null).await?;
        check(answer.status == StatusCode::OK, || format!("cannot remove it from {name}: {}", answer.message()))
    }

    async fn is_ready(&self, name: &str) -> Result<bool, StepError> {
        Ok(self.client.get(&through(name, "/readyz"), &self.admin).await?.status == StatusCode::OK)
    }

    async fn until_ready(&self, name: &str, expected: bool, limit: Duration) -> Result<(), StepError> {
        let started = Instant::now();
        while self.is_ready(name).await? != expected {
            let waited = started.elapsed();
            check(waited < limit, || format!("{name} is as before after {} ms", waited.as_millis()))?;
            sleep(ROLLOUT_POLL).await;
        }
        Ok(())
    }

    async fn leave(&self) -> Result<String, StepError> {
        self.manifests.remove(&self.guest)?;
        self.guest_answers(StatusCode::NOT_FOUND).await
    }

    async fn guest_answers(&self, status: StatusCode) -> Result<String, StepError> {
        let name = self.guest.name();
        let (_, waited) = self.until(name, status).await?;
        Ok(format!("{name} answers {} after {} ms", status.as_u16(), waited.as_millis()))
    }

    /// Asks a cluster until it answers with `status`; the answer, and how long it took.
    async fn until(&self, name: &str, status: StatusCode) -> Result<(Answer, Duration), StepError> {
        let started = Instant::now();
        loop {
            let answer = self.client.get(&through(name, "/api/v1/nodes"), &self.admin).await?;
            let waited = started.elapsed();
            if answer.status == status {
                return Ok((answer, waited));
            }
            check(waited < ROLLOUT, || format!("still {} after {} ms", answer.status.as_u16(), waited.as_millis()))?;
            sleep(ROLLOUT_POLL).await;
        }
    }

    /// A document that has to come with status 200.
    async fn get(&self, path: &str) -> Result<Answer, StepError> {
        let answer = self.client.get(path, &self.admin).await?;
        check(answer.status == StatusCode::OK, || format!("status {}: {}", answer.status.as_u16(), answer.message()))?;
        Ok(answer)
    }

    /// A refusal has to be a Status, or kubectl has nothing to say.
    fn expect_refusal(answer: &Answer, status: StatusCode) -> Result<(), StepError> {
        let (got, kind) = (answer.status, &answer.body["kind"]);
        check(got == status && kind == "Status", || format!("expected {status}, got {got}: {}", answer.message()))
    }

    fn first(&self) -> &'static str {
        self.members.first().map_or("", Member::name)
    }

    fn last(&self) -> &'static str {
        self.members.last().map_or("", Member::name)
    }
}

fn check(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), StepError> {
    if holds { Ok(()) } else { Err(StepError::Unexpected(complaint())) }
}
