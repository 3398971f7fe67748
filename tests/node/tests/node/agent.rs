//! The agent's own page, followed by an operator who makes the agent's identity by hand.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{commands, section};
use hub_tests::wait;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

use crate::pods::settled;
use crate::{readme, rotation};

const PAGE: &str = include_str!("../../../../charts/tunnel-agent/README.md");
const LIMIT: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "vela-system";

/// Follows the page with another cluster name: the page's own cluster has agents already.
pub(crate) fn installed(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let operator = readme::operator(testbed)?;
    let part = |from: &str, to: &str| -> Result<Vec<String>> {
        let text = section(PAGE, from, to)?.replace("berlin", "oslo").replace("<registry>", "localhost");
        Ok(commands(&text.replace("hub.example.com", "10.244.0.1")))
    };
    for line in part("**On the hub**, create", "**On the member**")? {
        operator.run(&line)?;
    }
    for line in part("**On the member**, install", "**On the hub**, register")? {
        let told = operator.run(&of_member(&line))?;
        ensure!(!line.contains("rollout status") || told.contains("successfully rolled out"), "{line}: {told}");
    }
    // The member's credential is shown as in the README; the chart's notes say where it is.
    for (key, file) in [(r"ca\.crt", "ca.crt"), ("token", "token")] {
        let shown = format!("-o jsonpath='{{.data.{key}}}' | base64 -d > {file}");
        operator.run(&format!("kubectl -n {NAMESPACE} get secret berlin {shown}"))?;
    }
    for line in part("**On the hub**, register", "**Or let the agent join")? {
        operator.run(&line.replace("vela-system-clusters", NAMESPACE))?;
    }
    wait::until("the cluster to answer", LIMIT, || {
        let pods = operator.run("kubectl clusters get pods oslo -n tunnel")?;
        ensure!(pods.matches(" 1/1 ").count() == 2, "{pods}");
        Ok(())
    })?;
    rotation::own_secret(&operator).context("another token")?;
    operator.run("kubectl clusters probe oslo")?;
    remove(&operator).context("its end")?;
    settled(testbed)
}

fn of_member(line: &str) -> String {
    line.replace("kubectl ", "kubectl --context berlin ").replace("helm ", "helm --kube-context berlin ")
}

fn remove(operator: &Operator<'_>) -> Result<()> {
    operator.run(&format!(
        "helm --kube-context berlin uninstall tunnel-agent -n tunnel
         kubectl --context berlin delete namespace tunnel
         kubectl -n {NAMESPACE} delete secret/oslo serviceaccount/tunnel-agent-oslo
         kubectl delete clusterrolebinding/tunnel-agent-oslo clusterrole/tunnel-agent-oslo"
    ))?;
    Ok(())
}
