//! `placement`: what a Placement chooses, and why.

mod listing;

use std::process::ExitCode;

use fleet::Failure;
use kube::api::Api;
use placement::Input;
use placement::conditions::decided_generation;
use placement::explain;
use placement::index::{Decisions, Scores};
use placement::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use placement::prepared::{Prepared, read};
use serde_json::Value;
use time::OffsetDateTime;

use self::listing::{absent, all, decisions, resource, scores, value};
use crate::output::{self, Format};
use crate::session::Session;
use crate::text_table;
use crate::trouble::{Result, Trouble};

/// Explain what a Placement of Open Cluster Management chooses.
///
/// Reads the Placement and what it depends on with your rights, and computes the choice here. It
/// needs no controller, and writes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kubectl clusters placement explain team/web")]
pub struct Placement {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Explain(Explain),
}

/// Show each candidate's scores, or the step that filtered it.
///
/// CHOSEN says whether the Placement chooses the cluster now, DECIDED whether its decisions name
/// it. The two differ until the scheduler has caught up, or while it does not touch the Placement:
/// the Placement's Events say why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters placement explain team/web
  kubectl clusters placement explain team/web -o json")]
struct Explain {
    /// Namespace and name of the Placement
    #[arg(value_name = "NAMESPACE/NAME")]
    name: String,
    /// json or yaml
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Everything that a choice depends on, as far as the person may read it.
struct World {
    sets: Vec<ManagedClusterSet>,
    bindings: Vec<ManagedClusterSetBinding>,
    clusters: Vec<ManagedCluster>,
    scores: Scores,
    decisions: Decisions,
}

// === impl Placement ===

impl Placement {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let Action::Explain(explain) = &self.action;
        explain.run(session).await
    }
}

// === impl Explain ===

impl Explain {
    async fn run(&self, session: &Session) -> Result<ExitCode> {
        if matches!(self.output, Some(Format::Wide | Format::Name)) {
            return Err(Trouble::usage("explain does not support this output", "omit -o, or give -o json or -o yaml"));
        }
        let is_name = |part: &str| !part.is_empty() && !part.contains('/');
        let Some((namespace, name)) = self.name.split_once('/').filter(|(a, b)| is_name(a) && is_name(b)) else {
            let what = format!("{:?} does not name a Placement", self.name);
            return Err(Trouble::usage(what, "give its namespace and name, as in team/web"));
        };
        let api = Api::namespaced_with(session.hub().clone(), namespace, &resource("v1beta1", "Placement"));
        let asked = async { api.get(name).await.map_err(Failure::from) };
        let object = value(session.bounded(asked).await.map_err(|failure| absent(failure, &self.name))?);
        let (prepared, why) = read(&object);
        let decided_generation = decided_generation(&object["status"]);
        let document = match why {
            Some(why) => explain::unreadable(&prepared, &why, decided_generation),
            None => Box::pin(World::read(session, &prepared)).await?.explain(&prepared, decided_generation),
        };
        self.show(&document)
    }

    fn show(&self, document: &Value) -> Result<ExitCode> {
        if let Some(format) = self.output {
            output::print_document(document, format == Format::Yaml)?;
        } else {
            output::print(&text(document))?;
        }
        if not_in_sets(document) {
            output::say(
                "decisions have clusters that are in none of its sets: the scheduler removes them at its next run, or \
                 10 minutes after the removals that the Event RemovalHeld reports",
            );
        }
        if document["isAtRest"] == true {
            output::say("it is not scheduled: it is being deleted, or an annotation turns its scheduling off");
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl World ===

impl World {
    async fn read(session: &Session, placement: &Prepared) -> Result<Self> {
        let (sets, bindings, clusters, decisions, scores) = tokio::try_join!(
            all(session, "v1beta2", "ManagedClusterSet", ""),
            all(session, "v1beta2", "ManagedClusterSetBinding", &placement.namespace),
            all(session, "v1", "ManagedCluster", ""),
            decisions(session, placement),
            scores(session, placement),
        )?;
        Ok(Self {
            sets: sets.into_iter().map(ManagedClusterSet::from).collect(),
            bindings: bindings.into_iter().map(ManagedClusterSetBinding::from).collect(),
            clusters: clusters.into_iter().map(ManagedCluster::from).collect(),
            scores: scores.into_iter().map(Into::into).collect(),
            decisions: decisions.into_iter().map(PlacementDecision::from).collect(),
        })
    }

    fn explain(&self, placement: &Prepared, decided_generation: Option<i64>) -> Value {
        explain::explain(&Input {
            placement,
            sets: &self.sets.iter().collect::<Vec<_>>(),
            bindings: &self.bindings.iter().collect::<Vec<_>>(),
            clusters: &self.clusters.iter().collect::<Vec<_>>(),
            scores: &self.scores,
            decisions: &self.decisions,
            decided_generation,
            now: OffsetDateTime::now_utc(),
        })
    }
}

fn not_in_sets(document: &Value) -> bool {
    let mut candidates = document["candidates"].as_array().into_iter().flatten();
    candidates.any(|candidate| candidate["filteredBy"] == "NotInSets")
}

/// Conditions and warnings, then one line for each candidate.
fn text(document: &Value) -> String {
    let mut lines = String::new();
    for condition in document["conditions"].as_array().into_iter().flatten() {
        let word = |field: &str| condition[field].as_str().unwrap_or_default();
        let line = format!("{}={} {}: {}", word("type"), word("status"), word("reason"), word("message"));
        lines.extend([&*text_table::tame(&line), "\n"]);
    }
    for warning in document["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        lines.extend(["warning: ", &*text_table::tame(warning), "\n"]);
    }
    let rows: Vec<Vec<String>> = document["candidates"].as_array().into_iter().flatten().map(row).collect();
    if document["isEvaluated"] == false {
        lines.push_str("not evaluated: its decisions stay as they are\n");
    }
    if !rows.is_empty() {
        lines.push('\n');
        lines.push_str(&text_table::lay_out(&HEADS, &rows));
    }
    lines
}

const HEADS: [&str; 6] = ["CLUSTER", "CHOSEN", "DECIDED", "FILTERED BY", "TOTAL", "SCORE X WEIGHT"];

/// A row of the table. Of a candidate that was not evaluated, only the decision is known.
fn row(candidate: &Value) -> Vec<String> {
    let is = |field: &str| match candidate[field].as_bool() {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => "-".to_owned(),
    };
    let filter = candidate["filteredBy"].as_str();
    let scores = candidate["scores"].as_array().into_iter().flatten().map(|score| {
        let name = score["prioritizer"].as_str().unwrap_or_default();
        format!("{name}={}x{}", score["score"], score["weight"])
    });
    let is_scored = filter.is_none() && candidate["total"].is_number();
    vec![
        text_table::tame(candidate["cluster"].as_str().unwrap_or_default()),
        is("isChosen"),
        is("isDecided"),
        filter.unwrap_or("-").to_owned(),
        if is_scored { candidate["total"].to_string() } else { "-".to_owned() },
        text_table::tame(&scores.collect::<Vec<_>>().join(" ")),
    ]
}
