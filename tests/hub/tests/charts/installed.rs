//! A release in its own namespace, next to others.

use hub_tests::prelude::*;

use crate::fixture::Planes;

pub(crate) const RELEASE: &str = "cluster-gateway";
/// Another release serves the API group on this hub.
const NO_API_SERVICE: &str = "--set=apiService.create=false";

/// An installed release of which nothing runs.
pub(crate) struct Installed<'a> {
    pub(crate) planes: &'a Planes,
    pub(crate) namespace: &'static str,
}

/// Runs a line as an operator with kubectl would.
pub(crate) fn shell(planes: &Planes, line: &str) -> Result<String> {
    planes.hub.server.kubectl().shell(line)?.run()?.success()
}

// === impl Installed ===

impl Installed<'_> {
    /// Runs a command of helm and returns its output, including the notes.
    pub(crate) fn helm(&self, command: &str, more: &[String]) -> Result<String> {
        let own = ["--create-namespace".to_owned(), NO_API_SERVICE.to_owned()];
        let own = if command == "install" { &own[..] } else { &[] };
        self.planes.helm.on_chart(&format!("{command} {RELEASE}"), self.namespace, &[own, more].concat())
    }

    /// The namespace in which the gateway would read clusters.
    pub(crate) fn secret_namespace(&self) -> Result<String> {
        let line = format!("deployment {RELEASE} -n {}", self.namespace);
        let args = self.planes.hub.server.field(&line, "/spec/template/spec/containers/0/args")?;
        let args = args.as_array().context("no arguments")?;
        let flag = args.iter().find_map(|arg| arg.as_str()?.strip_prefix("--secret-namespace="));
        Ok(flag.context("no --secret-namespace")?.to_owned())
    }

    /// Whether an account of this release may do this on the hub.
    pub(crate) fn may(&self, account: &str, attributes: &Value) -> Result<bool> {
        self.planes.may(self.namespace, account, attributes)
    }

    pub(crate) fn uninstall(&self) -> Result<()> {
        let words = ["uninstall", RELEASE, "--namespace", self.namespace, "--wait"];
        self.planes.helm.args(words).run()?.success().map(drop)
    }
}
