//! Upstream's unmodified agent, on a hub without upstream's controllers.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::{pace, wait};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kit::pki::Leaf;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::agent;
use super::requests::REASON;
use super::{Registration, accept, condition, exists, get, wait_condition};
use crate::fixture::{SOON, apply, event, namespace, print};

/// The member's namespace in which agents keep their certificates.
pub const AGENTS: &str = "open-cluster-management-agent";
const PLACE: &str = "klusterlet-place";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// The Lease's duration, short so that silence is known soon.
const SECONDS: u64 = 2;
/// Time from the end of an agent's grace period until the test sees the report.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// Time from the agent's own report that it is back until nothing contradicts it.
const CLEAN: Duration = Duration::from_secs(2);
/// From the end of the grace since the last renewal until the silence is reported, by the times
/// that Lease and reports have.
const TO_THE_SECOND: Duration = Duration::from_secs(1);
/// From the hub's word that it is silent.
const TAINTED: Duration = Duration::from_secs(1);
/// The agent asks its hub every few seconds.
const AGENT: Duration = Duration::from_mins(1);
/// The life of a certificate: the shortest that the agent accepts.
const LIFE: i64 = 3600;

/// The agent of cluster `name`.
pub struct Klusterlet<'t> {
    testbed: &'t Testbed,
    name: &'static str,
    process: Process,
}

pub fn joins(testbed: &Testbed) -> Result<()> {
    let _registration = Registration::start(testbed, PLACE)?;
    let mut one = Klusterlet::start(testbed, "klusterlet1", PLACE)?;
    let mut other = Klusterlet::start(testbed, "klusterlet2", PLACE)?;
    one.approved_first()?;
    other.accepted_first()?;
    one.beats(SECONDS)?;
    other.renews()?;
    wait::timely("the reports of the klusterlet's silence", TO_THE_SECOND, || one.dies_and_comes_back())?;
    testbed.hub.server.delete("managedclusters klusterlet1 klusterlet2")
}

// === impl Klusterlet ===

impl<'t> Klusterlet<'t> {
    /// Starts the agent with a bootstrap kubeconfig of a user in `place`.
    pub fn start(testbed: &'t Testbed, name: &'static str, place: &str) -> Result<Self> {
        let member = &testbed.member.server;
        member.apply_text(&tools::kinds("open-cluster-management.io/api", &["cluster/v1alpha1/0000_02_clusters"])?)?;
        member.apply(&[namespace(AGENTS)])?;
        let directory = testbed.directory(name)?;
        let hub_directory = directory.join("hub");
        std::fs::create_dir_all(&hub_directory)?;
        let bootstrap = bootstrap(testbed, place, directory.join("bootstrap.kubeconfig"))?;
        let arguments = [
            "agent".to_owned(),
            format!("--kubeconfig={}", member.kubectl().kubeconfig.display()),
            format!("--spoke-cluster-name={name}"),
            format!("--bootstrap-kubeconfig={}", bootstrap.display()),
            format!("--hub-kubeconfig-dir={}", hub_directory.display()),
            format!("--spoke-external-server-urls={}", member.url()),
            format!("--listen=127.0.0.1:{}", ports::free()?),
            format!("--namespace={AGENTS}"),
            format!("--hub-kubeconfig-secret={name}"),
            format!("--client-cert-expiration-seconds={LIFE}"),
            "--cluster-healthcheck-period=2s".to_owned(),
            "--disable-leader-election".to_owned(),
        ];
        let process = Process::start(name, &tools::provide(Tool::OcmRegistration)?, arguments, &directory)?;
        Ok(Self { testbed, name, process })
    }

    pub fn requests(&self) -> Result<Vec<Value>> {
        let all = get(self.testbed, &format!("csr -l open-cluster-management.io/cluster-name={}", self.name))?;
        Ok(all["items"].as_array().cloned().unwrap_or_default())
    }

    /// The name of its first request.
    pub fn wait_request(&mut self) -> Result<String> {
        wait::until("its request", AGENT, || {
            self.process.check()?;
            let first = self.requests()?.into_iter().next().context("none yet")?;
            first["metadata"]["name"].as_str().map(str::to_owned).context("a name")
        })
    }

    /// The agent has no rights, and a request of a user that is not trusted is not approved
    /// automatically.
    fn wait_left_to_a_person(&mut self) -> Result<String> {
        let request = self.wait_request()?;
        wait::until("an Event", SOON, || event(self.testbed, "default", &request, "RequestNotApproved"))?;
        ensure!(!exists(self.testbed, &format!("namespace {}", self.name))?);
        Ok(request)
    }

    pub fn approve(&self, request: &str) -> Result<()> {
        agent::approve(self.testbed, request)?;
        wait::until_true("the certificate", SOON, || {
            Ok(get(self.testbed, &format!("csr {request}"))?["status"]["certificate"].is_string())
        })
    }

    fn accept(&self) -> Result<()> {
        accept(self.testbed, self.name, true)?;
        wait_condition(self.testbed, self.name, ACCEPTED, "True/HubClusterAdminAccepted")
    }

    fn has_joined(&self) -> bool {
        condition(self.testbed, self.name, "ManagedClusterJoined").is_ok()
    }

    fn approved_first(&mut self) -> Result<()> {
        let request = self.wait_left_to_a_person()?;
        self.approve(&request)?;
        ensure!(!self.has_joined(), "it joined with one yes");
        self.accept()?;
        self.wait_joined()
    }

    fn accepted_first(&mut self) -> Result<()> {
        let request = self.wait_left_to_a_person()?;
        self.accept()?;
        // Acceptance of the cluster does not approve a request that claims to be it.
        let first = get(self.testbed, &format!("csr {request}"))?;
        ensure!(first["status"]["conditions"].is_null() && !self.has_joined(), "one yes is enough: {first}");
        self.approve(&request)?;
        self.wait_joined()?;
        ensure!(self.requests()?.len() == 1, "it asked again: {:?}", self.requests()?);
        Ok(())
    }

    pub fn wait_joined(&mut self) -> Result<()> {
        let joined = wait::until("it to join", AGENT, || {
            self.process.check()?;
            let found = condition(self.testbed, self.name, "ManagedClusterJoined")?;
            ensure!(found.starts_with("True"), "{found}");
            Ok(())
        });
        joined.with_context(|| self.process.log_tail())?;
        self.wait_available()
    }

    fn wait_available(&self) -> Result<()> {
        wait::until("it to be available without taints", AGENT, || {
            let found = condition(self.testbed, self.name, AVAILABLE)?;
            let taints = get(self.testbed, &format!("managedcluster {}", self.name))?["spec"]["taints"].clone();
            ensure!(found == "True/ManagedClusterAvailable", "{found}");
            ensure!(taints.as_array().is_none_or(Vec::is_empty), "{taints}");
            Ok(())
        })
        .with_context(|| self.process.log_tail())
    }

    /// Sets the Lease's duration, and waits for a renewal.
    pub fn beats(&self, seconds: u64) -> Result<()> {
        let patch = json!({"spec": {"leaseDurationSeconds": seconds}});
        self.testbed.hub.server.patch(&format!("managedcluster {}", self.name), &patch)?;
        self.wait_beat()
    }

    pub fn wait_beat(&self) -> Result<()> {
        let lease = format!("lease managed-cluster-lease -n {}", self.name);
        let renewed = || -> Result<Value> { Ok(get(self.testbed, &lease)?["spec"]["renewTime"].clone()) };
        let before = renewed()?;
        wait::until_true("its Lease to beat", AGENT, || Ok(renewed()? != before))
    }

    /// Returns how late its silence was reported, by the reports' own times, beyond the hub's part.
    fn dies_and_comes_back(&mut self) -> Result<Duration> {
        let (testbed, grace) = (self.testbed, Duration::from_secs(5 * SECONDS));
        self.process.stop()?;
        let died = Instant::now();
        let ((told, seen, tainted, taint), allowance) = pace::beside(&testbed.hub.server, || {
            wait_condition(testbed, self.name, AVAILABLE, "Unknown/ManagedClusterLeaseUpdateStopped")?;
            let (told, seen) = (died.elapsed(), Timestamp::now());
            let taint = wait::until("the taint", SOON, || {
                let taint = get(testbed, &format!("managedcluster {}", self.name))?["spec"]["taints"][0].clone();
                ensure!(taint["key"] == "cluster.open-cluster-management.io/unreachable", "{taint}");
                Ok(taint["timeAdded"].clone())
            })?;
            Ok((told, seen, died.elapsed(), taint))
        })?;
        ensure!(
            told < grace + TOLD_WITHIN + allowance,
            "it was told {told:?} after its end, and the hub's part may be {allowance:?}"
        );
        // A busy agent renews late: what it wrote says when it did so last.
        let due = self.renewed()? + grace;
        ensure!(seen >= due, "it was told within its grace: at {seen}, not {due}");
        let after = tainted.saturating_sub(told);
        ensure!(
            after < TAINTED + allowance,
            "the taint came {after:?} after the word, and the hub's part may be {allowance:?}"
        );
        let reported = self.lateness(due, &taint)?.saturating_sub(allowance);
        self.process.start_again()?;
        self.comes_back()?;
        Ok(reported)
    }

    /// It is back once it renews its Lease and reports itself available; what the hub reports until
    /// then is true.
    fn comes_back(&self) -> Result<()> {
        self.wait_beat()?;
        wait::until_true("its own word", AGENT, || {
            Ok(condition(self.testbed, self.name, AVAILABLE)? == "True/ManagedClusterAvailable")
        })?;
        let (took, allowance) = pace::beside(&self.testbed.hub.server, || {
            let back = Instant::now();
            self.wait_available()?;
            Ok(back.elapsed())
        })?;
        print(&format!("the klusterlet was clean {took:?} after its own word"));
        ensure!(
            took < CLEAN + allowance,
            "the taint went {took:?} after the agent's word, and the hub's part may be {allowance:?}"
        );
        Ok(())
    }

    /// When it renewed its Lease last, by its own word.
    fn renewed(&self) -> Result<Timestamp> {
        time_of(&get(self.testbed, &format!("lease managed-cluster-lease -n {}", self.name))?["spec"]["renewTime"])
    }

    /// The time from the end of its grace to the later one of the condition and the taint. Both
    /// have whole seconds, cut off.
    fn lateness(&self, due: Timestamp, tainted: &Value) -> Result<Duration> {
        let cluster = get(self.testbed, &format!("managedcluster {}", self.name))?;
        let silent = &crate::fixture::condition(&cluster["status"], AVAILABLE)["lastTransitionTime"];
        let late = [time_of(silent)?.duration_since(due), time_of(tainted)?.duration_since(due)];
        print(&format!("after the klusterlet's grace, the condition and the taint came {late:?}"));
        ensure!(late.iter().all(|late| *late > SignedDuration::from_secs(-1)), "they came within its grace: {late:?}");
        // Negative: in the same second.
        Ok(late.into_iter().map(|late| Duration::try_from(late).unwrap_or_default()).max().unwrap_or_default())
    }

    /// Replaces its certificate with one that has a tenth of its life left, as it would after some
    /// time: the agent asks with its own identity, and needs no administrator.
    fn renews(&mut self) -> Result<()> {
        let agent = self.of_secret("agent-name")?;
        let group = format!("system:open-cluster-management:{}", self.name);
        let life = |tenths: i32| time::Duration::seconds(LIFE) * tenths / 10;
        let leaf = Leaf::client(format!("{group}:{agent}"))
            .group(&group)
            .group("system:open-cluster-management:managed-clusters")
            .valid(life(-9), life(1));
        let issued = self.testbed.hub.server.authority().issue(&leaf);
        let aged = json!({"stringData": {"tls.crt": issued.chain_pem, "tls.key": issued.key_pem}});
        self.testbed.member.server.patch(&format!("secret {} -n {AGENTS}", self.name), &aged)?;
        let renewed = wait::until("another certificate", AGENT, || {
            self.process.check()?;
            let now = self.of_secret("tls.crt")?;
            ensure!(now != issued.chain_pem, "the old one");
            Ok(now)
        });
        let renewed = renewed.with_context(|| self.process.log_tail())?;
        let mut requests = self.requests()?;
        ensure!(requests.len() == 2, "one more request: {requests:?}");
        requests.retain(|request| request["status"]["conditions"][0]["reason"] == REASON);
        let [request] = &requests[..] else { anyhow::bail!("none was approved without a person: {requests:?}") };
        ensure!(
            request["spec"]["username"] == format!("{group}:{agent}") && request["spec"]["expirationSeconds"] == LIFE
        );
        ensure!(request["status"]["certificate"] == STANDARD.encode(renewed), "another one than it was given");
        // It continues with the new certificate.
        self.beats(SECONDS)?;
        self.wait_available()
    }

    /// A key of the Secret that it keeps on the member.
    fn of_secret(&self, key: &str) -> Result<String> {
        let secret = self.testbed.member.server.read(&format!("secret {} -n {AGENTS}", self.name))?;
        let value = secret["data"][key].as_str().with_context(|| format!("no {key}"))?;
        Ok(String::from_utf8(STANDARD.decode(value)?)?)
    }
}

fn time_of(field: &Value) -> Result<Timestamp> {
    Ok(field.as_str().context("a time")?.parse()?)
}

/// The bootstrap kubeconfig of a user in `place` that the part does not trust: a person must both
/// approve and accept.
pub fn bootstrap(testbed: &Testbed, place: &str, path: PathBuf) -> Result<PathBuf> {
    let account = "stranger";
    let token = testbed.hub.server.service_account_token(place, account)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("open-cluster-management:bootstrap:{place}:stranger")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "open-cluster-management:bootstrap"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": place}],
    });
    apply(testbed, &[binding])?;
    let authority = std::fs::read(testbed.hub.server.authority_file())?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": testbed.hub.server.url(), "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}
