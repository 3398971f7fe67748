//! `list`: one row for each cluster.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::Cluster;
use serde_json::json;
use tokio::time::sleep;

use crate::expiry::now;
use crate::look::{self, Asked, registered};
use crate::output::{self, Format};
use crate::progress::Line;
use crate::row::{Facts, Registered, Row, table};
use crate::session::Session;
use crate::span;
use crate::trouble::{Result, Trouble};

/// List the clusters, with status, version and the expiry of their credentials.
///
/// Asks each cluster for its version, through the gateway. AGENTS, EXPIRES and ALIAS need the right
/// to list the clusters' Secrets, and are - without it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters list
  kubectl clusters list -l env=prod -o wide
  kubectl clusters list -w                    # polls every 5 s, prints rows that changed
  kubectl clusters list --no-probe -o name    # only names, only from the hub")]
pub struct List {
    /// Clusters whose labels match, as in env=prod,tier!=test
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    selector: String,
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    /// Keep polling, and show the rows that change
    #[arg(short, long)]
    watch: bool,
    /// Polling interval
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse, requires = "watch")]
    interval: Duration,
    /// Ask only the hub, no cluster
    #[arg(long)]
    no_probe: bool,
}

// === impl List ===

impl List {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        if self.watch && self.output.is_some_and(|format| format != Format::Wide) {
            return Err(Trouble::usage("-w shows tables only", "omit -o, or give -o wide"));
        }
        let mut rows = self.rows(session).await?;
        self.show(&rows)?;
        if !self.watch {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            sleep(self.interval).await;
            // A failure of the hub does not end the watch: the user also watches for its return.
            let next = match self.rows(session).await {
                Ok(next) => next,
                Err(trouble) => {
                    output::say(&trouble.to_string());
                    continue;
                }
            };
            let changed = changes(&rows, &next);
            if !changed.is_empty() {
                output::print(&table(&changed, self.output == Some(Format::Wide)))?;
            }
            rows = next;
        }
    }

    async fn rows(&self, session: &Session) -> Result<Vec<Row>> {
        let names_only = self.output == Some(Format::Name);
        let (clusters, mut registered) = tokio::join!(session.fleet.clusters(&self.selector), async {
            if names_only { HashMap::new() } else { registered(session, &self.selector).await.unwrap_or_default() }
        });
        let mut clusters = clusters?;
        clusters.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let answers = self.answers(session, &clusters, &registered).await;
        let facts = clusters.into_iter().zip(answers).map(|(cluster, answer)| {
            let registered = registered.remove(cluster.name.as_str());
            let agents = answer.as_ref().and_then(|answer| answer.as_ref().ok()?.1);
            Facts { cluster, answer: answer.map(|answer| answer.map(|(seen, _)| seen)), agents, registered }
        });
        let now = now();
        Ok(facts.map(|facts| Row::new(&facts, now)).collect())
    }

    async fn answers(
        &self,
        session: &Session,
        clusters: &[Cluster],
        registered: &HashMap<String, Registered>,
    ) -> Vec<Option<Asked>> {
        if self.no_probe || self.output == Some(Format::Name) {
            return clusters.iter().map(|_| None).collect();
        }
        let names: Vec<ClusterName> = clusters.iter().map(|cluster| cluster.name.clone()).collect();
        let all = look::each(session, names, registered);
        let mut line = Line::new("asked");
        let outcomes = all.in_order(|progress, event| line.tell(progress, event)).await;
        outcomes.into_iter().map(|outcome| Some(outcome.result)).collect()
    }

    fn show(&self, rows: &[Row]) -> Result<()> {
        match self.output {
            Some(Format::Json | Format::Yaml) => {
                output::print_document(&json!({"clusters": rows}), self.output == Some(Format::Yaml))
            }
            Some(Format::Name) => output::print(&rows.iter().flat_map(|row| [&*row.name, "\n"]).collect::<String>()),
            _ if rows.is_empty() => {
                output::say("No clusters found. Register one with `kubectl clusters join`.");
                Ok(())
            }
            format => output::print(&table(rows, format == Some(Format::Wide))),
        }
    }
}

/// Rows that are new, that are gone, or that differ in more than the latency and the time that
/// their credential has left.
fn changes(before: &[Row], after: &[Row]) -> Vec<Row> {
    let lasting = |row: &Row| Row {
        latency_millis: None,
        latency: String::new(),
        credential_expires_in: String::new(),
        ..row.clone()
    };
    let known: Vec<_> = before.iter().map(lasting).collect();
    let mut changed: Vec<_> = after.iter().filter(|row| !known.contains(&lasting(row))).cloned().collect();
    let gone = before.iter().filter(|row| after.iter().all(|other| other.name != row.name)).cloned();
    changed.extend(gone.map(|row| Row { status: "Gone", ..row }));
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Agents;

    #[test]
    fn what_changes_is_shown_again_and_what_passes_is_not() {
        let row = Row { name: "berlin".into(), status: "Ready", latency: "8ms".into(), ..Row::default() };
        let agents = |linked| Row { agents: Some(Agents { linked, wanted: 2 }), ..row.clone() };
        let statuses = |before: &Row, after: &[Row]| {
            changes(std::slice::from_ref(before), after).iter().map(|row| row.status).collect::<Vec<_>>()
        };
        assert_eq!(statuses(&agents(2), &[agents(0)]), ["Ready"], "agents left");
        let reason = Row { reason: "its credential was refused".into(), ..row.clone() };
        assert_eq!(statuses(&row, &[reason]), ["Ready"]);
        let later = Row { latency: "9ms".into(), credential_expires_in: "89d".into(), ..row.clone() };
        assert!(statuses(&row, &[later]).is_empty(), "time alone has passed");
        assert_eq!(statuses(&row, &[]), ["Gone"]);
    }
}
