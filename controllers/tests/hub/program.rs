//! The controllers as a separate process, which can be killed, stopped and measured.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubeconfig::Credential;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::{http, wait};
use serde_json::json;

use crate::fixture::{SOON, apply, arguments};

/// One replica.
pub struct Program {
    pub process: Process,
    name: String,
}

// === impl Program ===

impl Program {
    /// Starts a replica with these arguments; the first is the program's name.
    pub fn start(testbed: &Testbed, name: &str, arguments: &[String]) -> Result<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_cluster-gateway-controllers"));
        let process = Process::start(name, program, &arguments[1..], &testbed.directory(name)?)?;
        Ok(Self { process, name: name.to_owned() })
    }

    /// Starts a replica with all its options in environment variables, by the names of flags.
    pub fn with_environment(testbed: &Testbed, name: &str, variables: &[(&str, String)]) -> Result<Self> {
        let program = env!("CARGO_BIN_EXE_cluster-gateway-controllers").to_owned();
        let set = variables.iter().map(|(flag, value)| format!("CLUSTER_GATEWAY_CONTROLLERS_{flag}={value}"));
        let process = Process::start(name, Path::new("env"), set.chain([program]), &testbed.directory(name)?)?;
        Ok(Self { process, name: name.to_owned() })
    }

    /// Starts a replica that writes into `namespace`, with its own ServiceAccount there, which may
    /// do everything.
    pub fn with_account(testbed: &Testbed, name: &str, namespace: &str, more: &[&str]) -> Result<Self> {
        let server = &testbed.hub.server;
        let token = server.service_account_token(namespace, name)?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        });
        apply(testbed, &[binding])?;
        let kubeconfig = server.kubeconfig(name, Credential::Token(token))?;
        Self::start(testbed, name, &arguments(namespace, &kubeconfig, more))
    }

    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.process.log())?)
    }

    /// Waits until its log contains these words.
    pub fn wait_to_say(&mut self, words: &str) -> Result<()> {
        wait::until(&format!("{} to say {words:?}", self.name), SOON, || {
            self.process.check()?;
            ensure!(self.log()?.contains(words), "{}", self.process.log_tail());
            Ok(())
        })
    }

    /// The response of its admin listener.
    pub fn get(&self, path: &str) -> Result<String> {
        let log = self.log()?;
        let (_, rest) = log.split_once(" admin=").context("it does not listen yet")?;
        let address: SocketAddr = rest.split_whitespace().next().unwrap_or_default().parse()?;
        http::plain(address, path)
    }

    /// The sum of a metric's series whose labels contain `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        Ok(kit::exposition::sum(&self.get("/metrics")?, name, labels))
    }
}
