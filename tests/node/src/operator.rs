//! An operator with a shell, kubectl, helm and `kubectl clusters`, in a directory of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::kubectl::{Kubectl, Output};

use crate::cluster::Cluster;
use crate::programs::CLI;
use crate::testbed::Testbed;

/// Time limit of one command line, some of which wait for a rollout.
const LIMIT: Duration = Duration::from_mins(6);

/// An administrator of the hub and of the clusters in their kubeconfig.
pub struct Operator<'a> {
    testbed: &'a Testbed,
    directory: tempfile::TempDir,
}

// === impl Operator ===

impl<'a> Operator<'a> {
    /// An operator whose current context is the hub, named `hub`.
    pub fn new(testbed: &'a Testbed, members: &[(&str, &'a Cluster)]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let contexts = [&[("hub", &testbed.hub)], members].concat();
        testbed.kubeconfig(&directory.path().join("kubeconfig"), &contexts)?;
        let charts = Chart::Gateway.directory().canonicalize()?;
        let charts = charts.parent().context("charts are nowhere")?;
        std::os::unix::fs::symlink(charts, directory.path().join("charts"))?;
        Ok(Self { testbed, directory })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// `kubectl clusters`, run as kubectl runs it.
    pub fn clusters(&self) -> Kubectl {
        Kubectl {
            binary: self.testbed.tools().join(CLI),
            kubeconfig: self.directory.path().join("kubeconfig"),
            cache: self.directory.path().to_path_buf(),
        }
    }

    /// The output of `kubectl clusters`; an error unless it ended with `code`.
    pub fn ended(&self, line: &str, code: i32) -> Result<Output> {
        let output = self.clusters().args(line.split_whitespace()).env("PATH", &self.path()?).limit(LIMIT).run()?;
        let Output { status, stdout, stderr } = &output;
        ensure!(*status == code, "kubectl clusters {line} ended with {status}, not {code}: {stderr}{stdout}");
        Ok(output)
    }

    /// Runs lines in a shell, in a directory with the charts; a failure is an error.
    pub fn run(&self, text: &str) -> Result<String> {
        let shell = Kubectl { binary: PathBuf::from("/bin/sh"), ..self.clusters() };
        let command = shell.args(["-ec", text]).directory(self.directory.path()).env("PATH", &self.path()?);
        command.limit(LIMIT).run()?.success().with_context(|| text.to_owned())
    }

    fn path(&self) -> Result<String> {
        Ok(format!("{}:{}", self.testbed.tools().display(), std::env::var("PATH")?))
    }
}
