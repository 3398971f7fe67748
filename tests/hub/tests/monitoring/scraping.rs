//! A Prometheus that scrapes the hub, the gateways, a tunnel-server and its agents, after requests
//! that succeed and requests that fail on each side.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;

use hub_tests::http;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::ports;
use hub_tests::prelude::*;
use hub_tests::process::Process;
use hub_tests::tools::{self, Tool};

const START: Duration = Duration::from_secs(30);
const LABEL: &str = "cluster.core.oam.dev/cluster-credential-type";
/// Clusters that fail: on the member's side, the tunnel's, the hub's, and the gateway's.
const AWAY: &str = "monitoring-away";
const UNLINKED: &str = "monitoring-unlinked";
const INVALID: &str = "monitoring-invalid";
const NOT_ISSUED: &str = "monitoring-not-issued";
/// A cluster whose credential comes from a program.
const ISSUED: &str = "monitoring-issued";
const CLUSTERS: [&str; 5] = [AWAY, UNLINKED, INVALID, NOT_ISSUED, ISSUED];

pub(super) struct Scraping<'a> {
    testbed: &'a Testbed,
    address: SocketAddr,
    _process: Process,
}

// === impl Scraping ===

impl<'a> Scraping<'a> {
    pub(super) fn start(testbed: &'a Testbed) -> Result<Self> {
        testbed.tunnelled()?;
        let directory = testbed.directory("monitoring")?;
        let config = directory.join("prometheus.yaml");
        std::fs::write(&config, configuration(testbed)?.to_string())?;
        register(testbed)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", directory.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let process = Process::start("prometheus", &tools::provide(Tool::Prometheus)?, args, &directory)?;
        let scraping = Self { testbed, address, _process: process };
        let up = || Ok(scraping.count("up == 1")? == targets(testbed)?.len());
        wait::until_true("Prometheus to scrape everybody", START, up).with_context(|| scraping.states())?;
        // Twice, with a sample in between: a rate needs two.
        for _ in 0..2 {
            scraping.cause()?;
            let before = scraping.samples()?;
            wait::until_true("another sample", START, || Ok(scraping.samples()? > before))?;
        }
        Ok(scraping)
    }

    /// The number of series that `query` has now.
    pub(super) fn count(&self, query: &str) -> Result<usize> {
        let answer = http::plain(self.address, &format!("/api/v1/query?query={}", encoded(query)))?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["data"]["result"].as_array().with_context(|| format!("{query}: {answer}"))?.len())
    }

    /// Removes the clusters that it registered.
    pub(super) fn end(self) -> Result<()> {
        CLUSTERS.iter().try_for_each(|cluster| self.testbed.hub.forget_member(cluster))
    }

    /// The number of samples of a program that always runs.
    fn samples(&self) -> Result<f64> {
        let query = encoded("min(count_over_time(cluster_gateway_client_connections[10m]))");
        let answer: Value = serde_json::from_str(&http::plain(self.address, &format!("/api/v1/query?query={query}"))?)?;
        Ok(answer["data"]["result"][0]["value"][1].as_str().unwrap_or("0").parse()?)
    }

    fn states(&self) -> String {
        http::plain(self.address, "/api/v1/targets?state=active").unwrap_or_default()
    }

    /// Requests that succeed on every route, and one that fails on every side.
    fn cause(&self) -> Result<()> {
        for route in [Route::Hub, Route::Gateway, Route::Tunnel, Route::Embedded] {
            self.testbed.kubectl(route).ok("get namespaces")?;
        }
        let identity = self.testbed.hub.server.admin();
        let client = self.testbed.gateway.client(Some(identity));
        for cluster in CLUSTERS {
            let path = format!("{}/api/v1/namespaces", Testbed::proxy_path(cluster));
            for _ in 0..3 {
                let answer = client.get(&path, &[])?;
                let fails = cluster != ISSUED;
                ensure!(answer.status.is_server_error() == fails, "{cluster}: {} {}", answer.status, answer.text());
            }
        }
        Ok(())
    }
}

/// The programs' addresses, and whether they use TLS.
fn targets(testbed: &Testbed) -> Result<Vec<(SocketAddr, bool)>> {
    let tunnelled = testbed.tunnelled()?;
    let gateways = [testbed.gateway.address(), tunnelled.embedded.address(), testbed.hub.server.address()];
    let plain = tunnelled.admins().into_iter().map(|admin| (admin, false));
    Ok(gateways.into_iter().map(|gateway| (gateway, true)).chain(plain).collect())
}

/// JSON is YAML.
fn configuration(testbed: &Testbed) -> Result<Value> {
    let directory = testbed.directory("monitoring")?;
    let files = testbed.hub.server.admin().write_to(&directory, "prometheus")?;
    let jobs = targets(testbed)?.into_iter().enumerate().map(|(number, (address, tls))| {
        // Servers' identities are not verified: this tests the metrics.
        let tls_config = json!({"cert_file": files.certificate, "key_file": files.key, "insecure_skip_verify": true});
        let mut job = json!({"job_name": number.to_string(), "static_configs": [{"targets": [address.to_string()]}]});
        if tls {
            job["scheme"] = "https".into();
            job["tls_config"] = tls_config;
        }
        job
    });
    Ok(json!({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs.collect::<Vec<_>>()}))
}

fn register(testbed: &Testbed) -> Result<()> {
    let hub = &testbed.hub;
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    hub.register_member(AWAY, &member.clone().at("https://127.0.0.1:1"))?;
    hub.register_member(UNLINKED, &member.behind_tunnel())?;
    let program = testbed.directory("monitoring")?.join("login");
    let issued = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": testbed.member_token, "expirationTimestamp": "2999-01-01T00:00:00Z"}});
    std::fs::write(&program, format!("#!/bin/sh\necho '{issued}'\n"))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    let dynamic = |name: &str, command: &str| {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": command,
            "interactiveMode": "Never"});
        document(
            name,
            "Dynamic",
            &json!({"endpoint": testbed.member.server.url(),
            "ca.crt": testbed.member.server.authority().root_pem(), "exec": exec.to_string()}),
        )
    };
    hub.apply(&[
        document(INVALID, "ServiceAccountToken", &json!({"endpoint": "ftp://192.0.2.7", "token": "t"})),
        dynamic(NOT_ISSUED, "false"),
        dynamic(ISSUED, &program.to_string_lossy()),
    ])
}

fn document(name: &str, kind: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "stringData": data,
        "metadata": {"name": name, "namespace": SECRET_NAMESPACE, "labels": {LABEL: kind}}})
}

/// Encodes a text for a URL's query.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}
