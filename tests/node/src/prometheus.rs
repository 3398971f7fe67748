//! A Prometheus that evaluates the chart's alerts on metrics of pods.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::process::Process;
use hub_tests::tools::{self, Tool};
use hub_tests::{http, ports, wait};
use serde_json::{Value, json};

/// Time for a rule to be evaluated on changed metrics.
const LIMIT: Duration = Duration::from_mins(1);

/// Addresses to scrape, each HOST:PORT.
pub struct Targets {
    pub servers: Vec<String>,
    pub gateways: Vec<String>,
    /// Token of an account that may read the gateways' metrics.
    pub token: String,
}

/// Ends when dropped.
pub struct Prometheus {
    address: SocketAddr,
    targets: usize,
    _process: Process,
}

// === impl Prometheus ===

impl Prometheus {
    /// Starts it, and waits until it has scraped all targets.
    pub fn start(directory: &Path, Targets { servers, gateways, token }: &Targets) -> Result<Self> {
        let directory = tempfile::tempdir_in(directory)?.keep();
        // An alert that would wait for five minutes fires at once: the wait is Prometheus's own.
        let rules = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
        let at_once = rules.lines().map(|line| match line.split_once("for: ") {
            Some((indent, _)) if indent.trim().is_empty() => format!("{indent}for: 0s\n"),
            _ => format!("{line}\n"),
        });
        std::fs::write(directory.join("alerts.yaml"), at_once.collect::<String>())?;
        let jobs = json!([
            {"job_name": "servers", "static_configs": [{"targets": servers}]},
            {"job_name": "gateways", "static_configs": [{"targets": gateways}], "scheme": "https",
                "tls_config": {"insecure_skip_verify": true}, "authorization": {"credentials": token}},
        ]);
        let config = json!({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"], "scrape_configs": jobs});
        std::fs::write(directory.join("prometheus.yaml"), config.to_string())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let args = [
            "--config.file=prometheus.yaml".to_owned(),
            "--storage.tsdb.path=data".to_owned(),
            format!("--web.listen-address={address}"),
        ];
        let process = Process::start("prometheus", &tools::provide(Tool::Prometheus)?, args, &directory)?;
        let prometheus = Self { address, targets: servers.len() + gateways.len(), _process: process };
        wait::until_true("Prometheus to scrape everybody", LIMIT, || Ok(prometheus.scraped()? == prometheus.targets))?;
        Ok(prometheus)
    }

    /// Waits until `alert` fires for `cluster`, or, without `fires`, until it does not.
    pub fn wait_for(&self, alert: &str, cluster: &str, fires: bool) -> Result<()> {
        wait::until(&format!("{alert} to change"), LIMIT, || self.expect(alert, cluster, fires))
    }

    /// An error unless `alert` fires for `cluster`, or, without `fires`, unless it does not.
    pub fn expect(&self, alert: &str, cluster: &str, fires: bool) -> Result<()> {
        let answer: Value = serde_json::from_str(&http::plain(self.address, "/api/v1/alerts")?)?;
        let alerts = answer["data"]["alerts"].as_array().context("no alerts")?;
        let is_it = |one: &&Value| one["labels"]["alertname"] == alert && one["labels"]["cluster"] == cluster;
        let firing = alerts.iter().filter(is_it).any(|one| one["state"] == "firing");
        ensure!(firing == fires, "{alerts:?}");
        ensure!(self.scraped()? == self.targets, "not everybody is scraped");
        Ok(())
    }

    fn scraped(&self) -> Result<usize> {
        let answer = http::plain(self.address, "/api/v1/query?query=up%3D%3D1")?;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["data"]["result"].as_array().context("no result")?.len())
    }
}
