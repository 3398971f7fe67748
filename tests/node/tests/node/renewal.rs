//! Certificates that helm generated, and their CAs, are renewed as the chart's page describes,
//! while clients use a cluster behind the tunnel: the API is always available, no read fails that
//! its client would not repeat by itself, no event of a watch and no line of a followed log is
//! lost, and no link breaks. Programs get new files one after the other. The tests after this one
//! replace pods: hub, gateways and agents then connect again, with the new certificates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::http::{self, Client};
use hub_tests::kubectl::Running;
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::connections::Caller;
use node_tests::image::PAUSE;
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::readme;

const LIMIT: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "vela-system";
const API: &str = "v1alpha1.cluster.core.oam.dev";
const SECRETS: [&str; 4] = [
    "cluster-gateway-tls",
    "cluster-gateway-tunnel-agents-tls",
    "cluster-gateway-tunnel-frontends-tls",
    "cluster-gateway-tunnel-gateway-tls",
];
const AUTHORITIES: [&str; 3] = [SECRETS[0], SECRETS[1], SECRETS[2]];
/// Mounted Secrets: program, Secret, directory, and the port that serves the certificate.
const MOUNTS: [(&str, &str, &str, Option<u16>); 4] = [
    ("cluster-gateway", SECRETS[0], "/etc/cluster-gateway/tls", Some(9443)),
    ("cluster-gateway", SECRETS[3], "/etc/cluster-gateway/tunnel", None),
    ("tunnel-server", SECRETS[1], "/etc/tunnel-server/agents", Some(8091)),
    ("tunnel-server", SECRETS[2], "/etc/tunnel-server/frontends", Some(8090)),
];
const PROGRAMS: [&str; 2] = ["cluster-gateway", "tunnel-server"];
/// The tunnel-servers' port for metrics.
const METRICS: u16 = 8095;
/// Reads between the new files of two pods, some of which a pod with the old files answers.
const SOME: usize = 4;
/// Name of a pod whose log is followed.
const TICKER: &str = "ticker";
/// Annotation that makes a kubelet look at a pod, and marks the end for a watcher of the API.
const MARK: &str = "renewed";

/// An operator who renews certificates.
struct Renewal<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
}

/// Files of a Secret, by name.
type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn renewed(testbed: &Testbed) -> Result<()> {
    let renewal = Renewal { testbed, operator: readme::operator(testbed)? };
    let load = Load::start(&testbed.hub, &[("berlin", &testbed.member)])?;
    let (mut log, mut api) = (renewal.follow()?, renewal.watch()?);
    let links = renewal.links()?;
    renewal.authorities(&load).context("the CAs")?;
    renewal.leaves(&load).context("the certificates")?;
    let broken = renewal.links()?;
    ensure!(broken == links, "links were refused or broke: before {links:?}, now {broken:?}");
    renewal.followed(&mut log)?;
    ensure!(load.repeated() == 0, "{} reads had to be repeated", load.repeated());
    renewal.watched(&mut api)?;
    load.wait_for_more(SOME)?;
    let tally = load.finish()?;
    ensure!(tally.reads > 8 * SOME && tally.events > SOME, "no load: {tally:?}");
    load::clean(&[&testbed.hub, &testbed.member])
}

// === impl Renewal ===

impl Renewal<'_> {
    fn run(&self, line: &str) -> Result<String> {
        self.operator.run(line)
    }

    /// Renews the certificates below CAs that all peers have by now: new CAs in this test,
    /// unchanged ones where nothing else is renewed.
    fn leaves(&self, load: &Load) -> Result<()> {
        let before = self.secrets()?;
        self.delete(&SECRETS.map(str::to_owned))?;
        let renewed = self.secrets()?;
        for (secret, before) in &before {
            let now = &renewed[secret];
            ensure!(now["tls.crt"] != before["tls.crt"] && now["ca.crt"] == before["ca.crt"], "{secret}");
        }
        self.arrive(&renewed, load)
    }

    /// Adds new CAs to the old ones.
    fn authorities(&self, load: &Load) -> Result<()> {
        let before = self.secrets()?;
        self.delete(&AUTHORITIES.map(|secret| format!("{secret}-ca")))?;
        let between = self.secrets()?;
        for (secret, before) in &before {
            let now = &between[secret];
            ensure!(now["tls.crt"] == before["tls.crt"] && now["ca.crt"] != before["ca.crt"], "{secret}");
        }
        self.distribute(&between[SECRETS[1]]["ca.crt"])?;
        self.arrive(&between, load)
    }

    /// Deletes Secrets, and lets helm make them again.
    fn delete(&self, secrets: &[String]) -> Result<()> {
        let secrets = secrets.join(" ");
        self.run(&format!(
            "kubectl -n {NAMESPACE} delete secret {secrets}
             helm upgrade cluster-gateway charts/cluster-gateway -n {NAMESPACE} --reuse-values"
        ))
        .map(drop)
    }

    /// Gives the agents' CAs to the agents, with the command of the chart's notes.
    fn distribute(&self, authorities: &[u8]) -> Result<()> {
        let secret = SECRETS[1];
        self.run(&format!(
            "kubectl -n {NAMESPACE} get secret {secret} -o jsonpath='{{.data.ca\\.crt}}' | base64 -d > agents-ca.crt
             helm --kube-context berlin upgrade tunnel-agent charts/tunnel-agent --reuse-values \
             --set-file serverCA.pem=agents-ca.crt"
        ))?;
        let file = "/etc/tunnel-agent/ca/server-ca.crt";
        let agents = pods(&self.testbed.member, "default", "tunnel-agent")?;
        self.look("--context berlin -n default", &agents)?;
        for pod in agents {
            let caller = Caller::of(&pod)?;
            let is_there = || Ok(caller.file(file)?.trim_ascii() == authorities.trim_ascii());
            wait::until_true("an agent to have the CAs", LIMIT, is_there)?;
        }
        Ok(())
    }

    /// Waits until each pod has these files and serves the certificates, one program after the
    /// other.
    fn arrive(&self, secrets: &BTreeMap<&str, Files>, load: &Load) -> Result<()> {
        for program in PROGRAMS {
            let replicas = pods(&self.testbed.hub, NAMESPACE, program)?;
            self.look(&format!("-n {NAMESPACE}"), &replicas)?;
            for pod in replicas {
                let caller = Caller::of(&pod)?;
                for (_, secret, directory, port) in MOUNTS.iter().filter(|(of, ..)| *of == program) {
                    let files = &secrets[secret];
                    wait::until(secret, LIMIT, || has(caller, directory, files))?;
                    if let Some(port) = port {
                        wait::until_true(secret, LIMIT, || shows(&pod, *port, &files["tls.crt"]))?;
                    }
                }
                load.wait_for_more(SOME)?;
            }
        }
        Ok(())
    }

    /// Makes kubelets look at pods' files now rather than within a minute.
    fn look(&self, place: &str, pods: &[Value]) -> Result<()> {
        let names: Vec<_> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        let names = names.join(" ");
        self.run(&format!("kubectl {place} annotate pods {names} --overwrite {MARK}=$(date +%s%N)")).map(drop)
    }

    fn secrets(&self) -> Result<BTreeMap<&'static str, Files>> {
        SECRETS.iter().map(|secret| Ok((*secret, files(&self.testbed.hub, secret)?))).collect()
    }

    /// Failures of links, as tunnel-servers count them.
    fn links(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for pod in pods(&self.testbed.hub, NAMESPACE, "tunnel-server")? {
            let metrics = http::plain(address(&pod, METRICS)?, "/metrics")?;
            // Malformed registrations come from this test: it sends nothing when it looks at a
            // certificate.
            let is_wrong = |line: &&str| {
                let (series, count) = line.rsplit_once(' ').unwrap_or_default();
                let is = |family, fine: [&str; 2]| {
                    series.starts_with(family) && !fine.iter().any(|fine| series.contains(&format!("\"{fine}\"")))
                };
                count != "0"
                    && (is("tunnel_server_registrations_total", ["linked", "malformed"])
                        || is("tunnel_server_links_ended_total", ["left", "drained"]))
            };
            ensure!(metrics.contains("tunnel_server_registrations_total{"), "{metrics}");
            wrong.extend(metrics.lines().filter(is_wrong).map(str::to_owned));
        }
        Ok(wrong)
    }

    /// Follows the log of a pod of the member, through hub, gateway and tunnel.
    fn follow(&self) -> Result<Running> {
        let member = &self.testbed.member;
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": load::NAMESPACE, "name": TICKER},
            "spec": {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
                "containers": [{"name": TICKER, "image": PAUSE, "args": ["tick"]}]}});
        // Its namespace is new: the account that the pod needs is made a moment later.
        wait::until("a pod", LIMIT, || member.kubectl().apply(&pod.to_string()))?;
        wait::until("it to run", LIMIT, || Caller::of(&member.get(&format!("pod {TICKER} -n {}", load::NAMESPACE))?))?;
        let server =
            format!("{}/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy", self.testbed.hub.url());
        let words = ["--server", &server, "-n", load::NAMESPACE, "logs", "--follow", TICKER];
        let mut log = self.testbed.hub.kubectl().args(words).start()?;
        ensure!(log.next_line(LIMIT)? == "0", "not its first line");
        Ok(log)
    }

    /// Checks that the log was followed without a gap until now.
    fn followed(&self, log: &mut Running) -> Result<()> {
        let last = self.run(&format!("kubectl --context berlin -n {} logs --tail=1 {TICKER}", load::NAMESPACE))?;
        let last: u64 = last.trim().parse().with_context(|| last.clone())?;
        for number in 1..=last {
            let line = log.next_line(LIMIT).with_context(|| format!("of {last} lines, after {}", number - 1))?;
            ensure!(line == number.to_string(), "{line} follows {}", number - 1);
        }
        Ok(())
    }

    /// Watches the hub's condition of the API.
    fn watch(&self) -> Result<Running> {
        let path = "jsonpath={.status.conditions[?(@.type==\"Available\")]['status','message']}";
        let path = format!("{path} {{.metadata.annotations.{MARK}}}{{\"\\n\"}}");
        let mut api = self.testbed.hub.kubectl().args(["get", "apiservice", API, "--watch", "-o", &path]).start()?;
        let first = api.next_line(LIMIT)?;
        ensure!(first.starts_with("True"), "{first}");
        Ok(api)
    }

    /// Checks that the API was always available.
    fn watched(&self, api: &mut Running) -> Result<()> {
        self.run(&format!("kubectl annotate apiservice {API} --overwrite {MARK}=all"))?;
        loop {
            let line = api.next_line(LIMIT)?;
            ensure!(line.starts_with("True"), "the API was away: {line}");
            if line.ends_with(" all") {
                return self.run(&format!("kubectl annotate apiservice {API} {MARK}-")).map(drop);
            }
        }
    }
}

/// Pods of a program that are not ending.
fn pods(cluster: &Cluster, namespace: &str, program: &str) -> Result<Vec<Value>> {
    let mut list = cluster.get(&format!("pods -n {namespace} -l app.kubernetes.io/name={program}"))?;
    let pods = list["items"].as_array_mut().context("no list")?;
    pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    ensure!(pods.len() == 2, "{} of {program}", pods.len());
    Ok(std::mem::take(pods))
}

fn files(cluster: &Cluster, secret: &str) -> Result<Files> {
    let found = cluster.get(&format!("secret {secret} -n {NAMESPACE}"))?;
    let data = found["data"].as_object().context("no data")?;
    let text = |value: &Value| anyhow::Ok(BASE64.decode(value.as_str().context("no text")?)?);
    data.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
}

/// Checks that a pod has these files in one of its directories.
fn has(caller: Caller, directory: &str, files: &Files) -> Result<()> {
    for (name, content) in files {
        let path = format!("{directory}/{name}");
        ensure!(caller.file(&path)? == *content, "{path} is the old one");
    }
    Ok(())
}

fn shows(pod: &Value, port: u16, certificate: &[u8]) -> Result<bool> {
    Ok(Client::probe(address(pod, port)?).peer_certificate()? == CertificateDer::from_pem_slice(certificate)?)
}

fn address(pod: &Value, port: u16) -> Result<SocketAddr> {
    Ok(SocketAddr::new(pod["status"]["podIP"].as_str().context("no address")?.parse()?, port))
}
