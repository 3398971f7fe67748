//! `placement`: what a Placement chooses, and why.

use std::process::ExitCode;

use fleet::{Failure, Kind};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use placement::Input;
use placement::conditions::decided_generation;
use placement::explain;
use placement::index::{Decisions, Scores};
use placement::objects::{GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use placement::prepared::{Prepared, read};
use serde_json::Value;
use time::OffsetDateTime;

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

/// The decisions of all namespaces count. A user that may list only those of this namespace gets a
/// message that says what follows.
async fn decisions(session: &Session, placement: &Prepared) -> Result<Vec<Value>> {
    match all(session, "v1beta1", "PlacementDecision", "").await {
        Err(trouble) if trouble.is_forbidden() => {
            output::say("you may not list the decisions of all namespaces: Balance counts those of this one only");
            all(session, "v1beta1", "PlacementDecision", &placement.namespace).await
        }
        answer => answer,
    }
}

/// Reads scores only if the placement may use them. A user that may not list them gets a message,
/// and the choice is computed without them. A hub may lack the kind.
async fn scores(session: &Session, placement: &Prepared) -> Result<Vec<Value>> {
    if !placement.has_expressions() && placement.score_resources().next().is_none() {
        return Ok(Vec::new());
    }
    let listed = list(session, "v1alpha1", "AddOnPlacementScore", "").await;
    match listed {
        Err(failure) if failure.kind == Kind::Plain(404) => Ok(Vec::new()),
        Err(failure) if failure.kind == Kind::Answered(403) => {
            output::say("you may not list addonplacementscores: this is computed as if there were none");
            Ok(Vec::new())
        }
        answer => answer.map_err(|failure| unlisted(failure, "AddOnPlacementScore")),
    }
}

/// Lists the objects of `namespace`, or of all namespaces if it is empty.
async fn all(session: &Session, version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
    list(session, version, kind, namespace).await.map_err(|failure| unlisted(failure, kind))
}

async fn list(
    session: &Session,
    version: &str,
    kind: &str,
    namespace: &str,
) -> std::result::Result<Vec<Value>, Failure> {
    let (client, of) = (session.hub().clone(), resource(version, kind));
    let api: Api<DynamicObject> =
        if namespace.is_empty() { Api::all_with(client, &of) } else { Api::namespaced_with(client, namespace, &of) };
    let asked = async { api.list(&ListParams::default()).await.map_err(Failure::from) };
    Ok(session.bounded(asked).await?.items.into_iter().map(value).collect())
}

fn resource(version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, version, kind), &plural)
}

/// Keeps the metadata: a Placement's generation and a cluster's labels count.
fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

fn unlisted(failure: Failure, kind: &str) -> Trouble {
    if failure.kind == Kind::Plain(404) {
        return no_kind(kind);
    }
    let is_forbidden = failure.kind == Kind::Answered(403);
    let trouble = Trouble::from(failure).when(format_args!("cannot list {kind}s"));
    if !is_forbidden {
        return trouble;
    }
    let plural = kind.to_lowercase();
    trouble.remedied(format!(
        "ask for the verb list on {plural}s ({GROUP}), or have someone with that right run this command"
    ))
}

fn absent(failure: Failure, name: &str) -> Trouble {
    let kind = failure.kind;
    let trouble = Trouble::from(failure).when(format_args!("cannot read Placement {name}"));
    match kind {
        Kind::Plain(404) => no_kind("Placement"),
        Kind::Answered(404) => trouble.remedied("`kubectl get placements -A` lists them"),
        Kind::Answered(403) => trouble.remedied(format!("ask for the verb get on placements ({GROUP})")),
        _ => trouble,
    }
}

fn no_kind(kind: &str) -> Trouble {
    let what = format!("this hub has no {kind}s ({GROUP})");
    let remedy = "choose the hub with --context, or install the kinds: the gateway's chart brings them with \
                  controllers.parts.placement=true";
    Trouble::failed(what, remedy)
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
