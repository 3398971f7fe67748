//! Each command with a kubeconfig of the hub that is wrong, invalid, without rights, or leads
//! nowhere: commands that read, and commands that read before they change anything.

use std::path::Path;

use anyhow::{Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubectl::Output;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::tools::{Tool, provide};

use crate::fixture::{clusters_as, dead, hub_user, joining, member};

/// Why the hub cannot be asked, and what the output says about it.
struct Case<'a> {
    name: &'static str,
    kubeconfig: &'a Path,
    parts: &'static [&'static str],
}

// === impl Case ===

impl Case<'_> {
    /// Checks that the output has the cause and a remedy.
    fn is_told(&self, line: &str, output: &Output) -> Result<()> {
        let (told, name) = (format!("{}{}", output.stdout, output.stderr), self.name);
        // What the person may not see is a warning, not a failure.
        let is_warned = name == "powerless" && line.starts_with("check");
        let (codes, marks) = if is_warned {
            (0..=0, &["‼ cannot check the clusters: "][..])
        } else {
            (1..=3, &["error: ", "✗ "][..])
        };
        ensure!(codes.contains(&output.status), "{name}, `{line}`: {output:?}");
        ensure!(marks.iter().any(|mark| told.contains(mark)), "{name}, `{line}`: no cause: {told}");
        ensure!(told.contains("remedy: "), "{name}, `{line}`: no remedy: {told}");
        if line.starts_with("check") {
            let begin = |words: &str| told.lines().filter(|line| line.trim_start().starts_with(words)).count();
            ensure!(begin("‼ ") + begin("✗ ") + begin("error: ") == begin("remedy: "), "{name}, `{line}`: {told}");
        }
        for part in self.parts {
            ensure!(told.contains(part), "{name}, `{line}`: no {part}: {told}");
        }
        Ok(())
    }
}

/// Commands with names of clusters look up no clusters, commands with `--all` do.
fn lines(testbed: &Testbed) -> Result<Vec<String>> {
    let helm = provide(Tool::Helm)?;
    let charts = Chart::Gateway.directory();
    let install = "install --set image.repository=example.test/gateway";
    Ok(vec![
        "list".to_owned(),
        "check".to_owned(),
        format!("check {CLUSTER}"),
        format!("probe {CLUSTER}"),
        format!("get namespaces {CLUSTER}"),
        "get namespaces --all".to_owned(),
        "exec-each --all -- true".to_owned(),
        "kubeconfig --all".to_owned(),
        format!("{install} --helm {} --chart {}", helm.display(), charts.display()),
        format!("label {CLUSTER} cli-matrix=yes"),
        format!("alias {CLUSTER} Matrix"),
        format!("rotate {CLUSTER} {}", member(testbed)),
        format!("rename {CLUSTER} {CLUSTER}-matrix"),
        format!("detach {CLUSTER} {} --yes", member(testbed)),
        format!("join cli-matrix --rights view {}", joining(testbed)),
        format!("join cli-matrix --rights view --tunnel {} --helm {}", member(testbed), helm.display()),
    ])
}

pub fn looks(testbed: &Testbed) -> Result<()> {
    let garbage = testbed.launcher().file("cli-matrix-garbage.yaml");
    std::fs::write(&garbage, "clusters: [")?;
    let dead = dead(testbed, "matrix")?;
    let void = hub_user(testbed, "matrix-void", "no-such-token")?;
    testbed.hub.server.create_namespace("cli-matrix")?;
    let token = testbed.hub.server.service_account_token("cli-matrix", "powerless")?;
    let powerless = hub_user(testbed, "matrix-powerless", &token)?;
    let cases = [
        Case { name: "wrong", kubeconfig: &garbage, parts: &["cli-matrix-garbage.yaml"] },
        Case { name: "dead", kubeconfig: &dead, parts: &["refused"] },
        Case { name: "void", kubeconfig: &void, parts: &["renew the credential in your kubeconfig"] },
        Case { name: "powerless", kubeconfig: &powerless, parts: &["system:serviceaccount:cli-matrix:powerless"] },
    ];
    let secret = format!("secret {CLUSTER} -n {SECRET_NAMESPACE}");
    let state = || testbed.hub.server.text(&secret, "/metadata/resourceVersion");
    let before = state()?;
    let mut wrong = Vec::new();
    for case in cases {
        let program = clusters_as(testbed, case.kubeconfig);
        for line in lines(testbed)? {
            wrong.extend(case.is_told(&line, &program.args(line.split(' ')).run()?).err());
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    ensure!(state()? == before, "the cluster's Secret was changed");
    let made = testbed.member.server.names("namespaces,clusterrolebindings")?;
    ensure!(!made.iter().any(|name| name.contains("cli-matrix")), "{made:?}");
    // The dashboard tells what the hub says. Without a hub to ask, there is no dashboard.
    let output = clusters_as(testbed, &garbage).args(["dashboard", "--no-open"]).run()?;
    ensure!(output.status == 2 && output.stderr.contains("remedy: "), "{output:?}");
    Ok(())
}
