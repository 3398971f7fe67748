//! What helm printed, or the trouble if it failed, with a remedy.

use std::io;
use std::process::Output;

use crate::text_table;
use crate::trouble::{Exit, Result, Trouble};

pub(super) fn printed(ended: io::Result<Output>) -> Result<String> {
    let output = ended.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(&words(&output)))
    }
}

/// helm's own message about a failure.
pub(super) fn words(output: &Output) -> String {
    text_table::tame(String::from_utf8_lossy(&output.stderr).trim())
}

pub(super) fn failed(what: &str) -> Trouble {
    let trouble = Trouble::failed(format!("helm: {what}"), remedy(what));
    if trouble.is_forbidden() { Trouble { exit: Exit::Hub, ..trouble } } else { trouble }
}

/// What to do about a failure that helm reports.
pub(super) fn remedy(what: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| what.contains(word));
    if says(&["another operation"]) {
        "a helm that was killed has left the release locked: see `helm history`, then `helm rollback` to a revision \
         that was deployed, or `helm uninstall` if there is none, and run the same command again"
    } else if says(&["invalid ownership metadata"]) {
        "something else installed that object: of the Go cluster-gateway, only swap the image (docs/migration.md), or \
         remove it first; of anything else, choose another --namespace"
    } else if says(&["is forbidden"]) {
        "ask an administrator of the hub to run this command, or for the right that the message names: the chart makes \
         ClusterRoles, an APIService and a namespace"
    } else if says(&["don't meet the specifications of the schema"]) {
        "correct the values that the message names; a chart of another version than this program may not know them: \
         omit --chart, or --agent-chart of `join --tunnel`, for this program's own"
    } else if says(&["reset-then-reuse-values"]) {
        "use helm 3.14 or later"
    } else if says(&["cluster unreachable"]) {
        "check that `kubectl version` works with this context, or choose another --context"
    } else if says(&["it was interrupted", "did not end", "timed out", "deadline exceeded"]) {
        "see the pods and events of its namespace; run the same command again to continue, with more time: --wait"
    } else {
        "check that --chart (of `join --tunnel`: --agent-chart) is the chart's directory or address, and check the \
         values"
    }
}
