//! Steps of the demo on real control planes: kubectl's own requests, through hub and gateway, to
//! the member.
//!
//! A step that passes returns the sentence to show; one that fails returns the reason. Ordered: the
//! second registration has to be made before it can be taken back.

use std::{collections::BTreeSet, fs::OpenOptions, io::Write as _, time::Duration};

use anyhow::anyhow;
use http::StatusCode;
use hub_tests::{
    http::Response,
    hub::MemberSecret,
    kubectl::Output,
    testbed::{CLUSTER, Testbed},
    tunnel::CLUSTER_TUNNEL,
    wait,
};
use tokio::time::Instant;

use super::{POD, Real, STRANGER};

/// The name under which the hub's aggregator knows the gateway.
const API: &str = "v1alpha1.cluster.core.oam.dev";
/// How long something that happened may take to reach kubectl.
const EVENT_PATIENCE: Duration = Duration::from_secs(10);
/// How soon a Secret has to take effect.
const ROLLOUT: Duration = Duration::from_secs(5);
/// Pods of the deployment that a watch is to show.
const REPLICAS: usize = 2;
/// Lines of a watch that are read for it: each pod has a handful of states.
const MAX_WATCH_LINES: usize = 50;
/// Lines that have to arrive one by one.
const LINES: usize = 3;
/// Bytes that go into a pod and come back, more than any buffer on the way holds.
const BULK: usize = 1 << 20;
/// The name of the second registration.
const SECOND: &str = "second";

/// One thing to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The hub's aggregator calls the gateway available.
    Available,
    /// The hub lists the clusters.
    Clusters,
    /// A deployment is made and its pods come up in a watch.
    Watch,
    /// The pods, as the member itself lists them.
    Pods,
    /// A followed log grows line by line.
    Log,
    /// A command runs in a pod.
    Exec,
    /// A cluster that does not exist.
    Unknown,
    /// The member without an address, through its agent.
    Tunnel,
    /// The agent dies.
    Cut,
    /// The agent is started again.
    Restored,
    /// A user without rights.
    Stranger,
    /// The member is registered a second time.
    Register,
    /// The second registration is taken back.
    Forget,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A program failed, or was not done in time.
    #[error("{0:#}")]
    Program(#[from] anyhow::Error),
    /// The container's log could not be written.
    #[error("cannot write the container's log: {0}")]
    Log(#[from] std::io::Error),
    /// An answer came, but not the right one.
    #[error("{0}")]
    Unexpected(String),
}

// === impl Step ===

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 13] = [
        Self::Available,
        Self::Clusters,
        Self::Watch,
        Self::Pods,
        Self::Log,
        Self::Exec,
        Self::Tunnel,
        Self::Cut,
        Self::Restored,
        Self::Unknown,
        Self::Stranger,
        Self::Register,
        Self::Forget,
    ];

    /// Title of the step, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Available => "ask the hub for the gateway's API",
            Self::Clusters => "list the clusters on the hub",
            Self::Watch => "deploy and watch the pods",
            Self::Pods => "list the pods",
            Self::Log => "follow a log",
            Self::Exec => "run a command in a pod",
            Self::Unknown => "request a cluster that does not exist",
            Self::Tunnel => "exec through tunnel-server and agent",
            Self::Cut => "kill that agent",
            Self::Restored => "start it again",
            Self::Stranger => "send a request without rights",
            Self::Register => "register the member a second time",
            Self::Forget => "delete that Secret again",
        }
    }

    /// Runs the step; the text says what was seen. Blocks.
    pub fn run(self, real: &Real) -> Result<String, StepError> {
        match self {
            Self::Available => real.available(),
            Self::Clusters => real.clusters(),
            Self::Watch => real.watch(),
            Self::Pods => real.pods(),
            Self::Log => real.follow(),
            Self::Exec => real.exec(),
            Self::Unknown => real.unknown(),
            Self::Tunnel => real.tunnel(),
            Self::Cut => real.cut(),
            Self::Restored => real.restored(),
            Self::Stranger => real.stranger(),
            Self::Register => real.register(),
            Self::Forget => real.forget(),
        }
    }
}

// === impl Real ===

impl Real {
    fn available(&self) -> Result<String, StepError> {
        let condition = "jsonpath={.status.conditions[?(@.type==\"Available\")].status}";
        let status = self.kubectl.ok(&format!("--context hub get apiservice {API} -o {condition}"))?;
        check(status == "True", || format!("Available is {status:?}"))?;
        Ok(format!("{API} is available"))
    }

    fn clusters(&self) -> Result<String, StepError> {
        let names = self.kubectl.ok("--context hub get clustergateways -o name")?;
        let names: Vec<&str> = names.lines().filter_map(|name| name.rsplit('/').next()).collect();
        check(names.contains(&CLUSTER), || format!("no {CLUSTER} among {names:?}"))?;
        Ok(names.join(", "))
    }

    fn watch(&self) -> Result<String, StepError> {
        let mut watch = self.kubectl.args(["--context", CLUSTER, "get", "pods", "--watch"]).start()?;
        // With the first line the list is there, and nothing that happens from now on can be
        // missed.
        watch.next_line(EVENT_PATIENCE)?;
        let started = Instant::now();
        let deployment = format!("create deployment shop --image=none --replicas={REPLICAS}");
        self.kubectl.ok(&format!("--context {CLUSTER} {deployment}"))?;
        let mut running = BTreeSet::new();
        for _ in 0..MAX_WATCH_LINES {
            let line = watch.next_line(EVENT_PATIENCE)?;
            if line.starts_with("shop-") && line.contains("Running") {
                running.extend(line.split_whitespace().next().map(str::to_owned));
            }
            if running.len() == REPLICAS {
                return Ok(format!("{REPLICAS} new pods seen running after {} ms", started.elapsed().as_millis()));
            }
        }
        Err(StepError::Unexpected(format!("{} of {REPLICAS} pods seen running", running.len())))
    }

    fn pods(&self) -> Result<String, StepError> {
        let list = |context: &str| self.kubectl.ok(&format!("--context {context} get pods -A -o name"));
        let (through, direct) = (list(CLUSTER)?, list("direct")?);
        check(!through.is_empty() && through == direct, || format!("{through:?} instead of {direct:?}"))?;
        Ok(format!("{} pods, the same as straight from the member", through.lines().count()))
    }

    fn follow(&self) -> Result<String, StepError> {
        let mut log = OpenOptions::new().append(true).open(self.log())?;
        let mut follower = self.kubectl.args(["--context", CLUSTER, "logs", "--follow", "--tail=1", POD]).start()?;
        follower.next_line(EVENT_PATIENCE)?;
        let mut slowest = Duration::ZERO;
        // The next line is written when the last one has come: a route that collects lines would
        // wait for ever.
        for number in 1..=LINES {
            let text = format!("level=info msg=\"request served\" n={number}");
            let started = Instant::now();
            writeln!(log, "{text}")?;
            let line = follower.next_line(EVENT_PATIENCE)?;
            check(line == text, || format!("{line:?} instead of {text:?}"))?;
            slowest = slowest.max(started.elapsed());
        }
        Ok(format!("{LINES} new lines of {POD}, each within {} ms of being written", slowest.as_millis().max(1)))
    }

    fn exec(&self) -> Result<String, StepError> {
        self.cat(CLUSTER)
    }

    /// Sends a text into a pod and compares what comes back.
    fn cat(&self, context: &str) -> Result<String, StepError> {
        let text = vec![b'x'; BULK];
        let cat = self.kubectl.args(["--context", context, "exec", "--stdin", POD, "--", "cat"]);
        let output = cat.stdin(text.clone()).run()?.success()?;
        check(output.as_bytes() == text, || format!("{} of {BULK} bytes came back", output.len()))?;
        Ok(format!("{} MiB went into `cat` in {POD} and came back", BULK >> 20))
    }

    fn unknown(&self) -> Result<String, StepError> {
        // By hand: kubectl has words of its own for a 404.
        let answer = self.get(&format!("{}/api/v1/pods", Testbed::proxy_path("atlantis")))?;
        let message = answer.json()?["message"].as_str().unwrap_or_default().to_owned();
        let refused = answer.status == StatusCode::NOT_FOUND && message.contains("no such cluster");
        check(refused, || format!("{}: {message:?}", answer.status))?;
        Ok(format!("404: {message}"))
    }

    fn tunnel(&self) -> Result<String, StepError> {
        let list = |context: &str| self.kubectl.ok(&format!("--context {context} get pods -A -o name"));
        let (through, direct) = (list(CLUSTER_TUNNEL)?, list("direct")?);
        check(!through.is_empty() && through == direct, || format!("{through:?} instead of {direct:?}"))?;
        self.cat(CLUSTER_TUNNEL)
    }

    fn cut(&self) -> Result<String, StepError> {
        self.lifeline.cut();
        let answer = self.until(CLUSTER_TUNNEL, StatusCode::SERVICE_UNAVAILABLE)?.0;
        let message = answer.json()?["message"].as_str().unwrap_or_default().to_owned();
        let clear = [CLUSTER_TUNNEL, "agent"].iter().all(|word| message.contains(word));
        check(clear, || format!("unclear message {message:?}"))?;
        Ok(format!("503: {message}"))
    }

    fn restored(&self) -> Result<String, StepError> {
        let started = Instant::now();
        self.lifeline.restore()?;
        self.until(CLUSTER_TUNNEL, StatusCode::OK)?;
        Ok(format!("{CLUSTER_TUNNEL} answers 200 after {} ms", started.elapsed().as_millis()))
    }

    fn stranger(&self) -> Result<String, StepError> {
        let words = ["--context", CLUSTER, "--user", STRANGER, "get", "pods"];
        refusal(&self.kubectl.args(words).run()?, &["Forbidden", STRANGER])
    }

    fn register(&self) -> Result<String, StepError> {
        let secret = MemberSecret::with_token(&self.testbed.member.server, &self.testbed.member_token);
        self.testbed.hub.register_member(SECOND, &secret)?;
        self.second_answers(StatusCode::OK)
    }

    fn forget(&self) -> Result<String, StepError> {
        self.testbed.hub.forget_member(SECOND)?;
        self.second_answers(StatusCode::NOT_FOUND)
    }

    fn second_answers(&self, status: StatusCode) -> Result<String, StepError> {
        let (_, waited) = self.until(SECOND, status)?;
        Ok(format!("{SECOND} answers {} after {} ms", status.as_u16(), waited.as_millis()))
    }

    /// Asks `cluster` until it answers with `status`; the answer, and how long it took. By hand,
    /// because kubectl takes longer to start than the change to take effect.
    fn until(&self, cluster: &str, status: StatusCode) -> Result<(Response, Duration), StepError> {
        let (path, started) = (format!("{}/version", Testbed::proxy_path(cluster)), Instant::now());
        let answer = wait::until(cluster, ROLLOUT, || match self.get(&path)? {
            answer if answer.status == status => Ok(answer),
            answer => Err(anyhow!("still {}: {}", answer.status, answer.text())),
        })?;
        Ok((answer, started.elapsed()))
    }

    /// A request to the hub by the user of [`CLUSTER`]'s context.
    fn get(&self, path: &str) -> anyhow::Result<Response> {
        let bearer = format!("Bearer {}", self.testbed.token);
        self.testbed.hub.server.client(None).get(path, &[("authorization", &bearer)])
    }
}

/// kubectl has to have failed with all of `words`; its output is the result.
fn refusal(output: &Output, words: &[&str]) -> Result<String, StepError> {
    let said = output.stderr.trim();
    let refused = output.status == 1 && words.iter().all(|word| said.contains(word));
    check(refused, || format!("kubectl ended with {} and said {said:?}", output.status))?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

fn check(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), StepError> {
    if holds { Ok(()) } else { Err(StepError::Unexpected(complaint())) }
}
