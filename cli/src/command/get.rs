//! `get`: reads objects of many clusters at once.

mod found;

use std::collections::BTreeMap;
use std::process::ExitCode;

use api::cluster_name::ClusterName;
use fleet::{Failure, Kind, Outcome};
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::found::{CollectedPages, UNHEARD_OF, discover, is_unheard_of, is_unknown};
use crate::bytes_left::BytesLeft;
use crate::output::{self, Format};
use crate::progress::Line;
use crate::resource::{Resource, ResourceArgument};
use crate::selection::Selection;
use crate::session::{self, Session};
use crate::tables::{self, Part};
use crate::text_table;
use crate::trouble::{self, Exit, Result, Trouble};

/// Objects per page, as many as kubectl asks for.
const PAGE: usize = 500;
/// Most pages of one cluster.
const PAGES: usize = 1000;
/// Most bytes that are kept of all clusters' responses: what is shown must fit into memory.
const MOST: usize = 512 << 20;

/// Show objects of many clusters in one table.
///
/// Looks the resource up on the hub, and in each cluster that does not have it there. `-l` selects
/// clusters, instead of `--all`; `--where` selects objects.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters get pods --all -A
  kubectl clusters get deploy -l env=prod -n web -o wide     # of clusters with this label
  kubectl clusters get pods --all --where app=web            # with this label themselves
  kubectl clusters get nodes berlin,munich --where kubernetes.io/arch=arm64
  kubectl clusters get configmap/settings --all -o yaml")]
pub struct Get {
    /// As for kubectl: pods, po, deployments.apps, or TYPE/NAME for one object
    resource: String,
    /// Clusters, as NAME,NAME
    clusters: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Namespace in each cluster [default: default]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Objects whose labels match
    #[arg(long = "where", value_name = "SELECTOR")]
    objects: Option<String>,
    /// Objects whose fields match
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

// === impl Get ===

impl Get {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let wanted = ResourceArgument::parse(&self.resource).ok_or_else(|| {
            Trouble::usage(
                format!("{:?} is not a resource", self.resource),
                "write it as for kubectl: pods, or pods/NAME",
            )
        })?;
        let clusters = self.selection.resolve(session, self.clusters.as_deref()).await?;
        // Only the hub guides the requests to all clusters: a member could lead those to all others
        // elsewhere. It is no failure if the hub does not know the resource, or does not say.
        let guide = match timeout(session.options.request_timeout, discover(session.hub(), &wanted)).await {
            Ok(Err(failure)) if matches!(failure.kind, Kind::Unanswered | Kind::Answered(401)) => {
                return Err(failure.into());
            }
            asked => asked.ok().and_then(|asked| asked.ok().flatten()),
        };
        let room = &BytesLeft::new(MOST);
        let read = |_, client| self.read(client, &wanted, guide.as_ref(), room);
        let all = session.fleet.each(clusters, session.limits(), read);
        let mut line = Line::new("asked");
        let outcomes = all.in_order(|progress, event| line.tell(progress, event)).await;
        drop(line);
        if outcomes.iter().all(|outcome| outcome.result.as_ref().is_err_and(is_unheard_of)) {
            let remedy = "see `kubectl api-resources` for their names";
            return Err(Trouble::failed("no cluster has this resource", remedy));
        }
        self.show(outcomes)
    }

    async fn read(
        &self,
        client: Client,
        wanted: &ResourceArgument,
        guide: Option<&Resource>,
        room: &BytesLeft,
    ) -> std::result::Result<CollectedPages, Failure> {
        let absent = match guide {
            None => None,
            Some(guide) => match self.read_at(&client, wanted, guide, room).await {
                // The cluster may have the resource elsewhere, or run another version of
                // Kubernetes. Or the one object is absent.
                Err(failure) if is_unknown(&failure) => Some(failure),
                outcome => return outcome,
            },
        };
        match discover(&client, wanted).await? {
            Some(own) if guide != Some(&own) => self.read_at(&client, wanted, &own, room).await,
            found => Err(absent.filter(|_| found.is_some()).unwrap_or_else(|| Failure {
                reason: UNHEARD_OF.to_owned(),
                ..Failure::own(format!("it has no resource {:?}", self.resource))
            })),
        }
    }

    async fn read_at(
        &self,
        client: &Client,
        wanted: &ResourceArgument,
        at: &Resource,
        room: &BytesLeft,
    ) -> std::result::Result<CollectedPages, Failure> {
        let namespace = if self.all_namespaces { None } else { Some(self.namespace.as_deref().unwrap_or("default")) };
        let path = at.path(namespace, wanted.object.as_deref());
        let whole = matches!(self.output, Some(Format::Json | Format::Yaml | Format::Name));
        let mut found = if whole { CollectedPages::Objects(Vec::new()) } else { CollectedPages::Rows(Part::default()) };
        let mut next = String::new();
        for _ in 0..PAGES {
            let accept = if whole { session::JSON } else { tables::ACCEPT };
            let body = session::get(client, &format!("{path}?{}", self.query(at, &next)), accept).await?;
            room.take(body.len())?;
            next = found.add(&body)?;
            if next.is_empty() {
                return Ok(found);
            }
        }
        Err(Failure::own(format!("the list does not end after {PAGES} pages")))
    }

    fn query(&self, at: &Resource, next: &str) -> String {
        let mut query = format!("limit={PAGE}");
        // A row's namespace is in its object's metadata. Nothing else of the object is needed.
        let include = if self.all_namespaces && at.namespaced { "Metadata" } else { "None" };
        let given = [
            ("includeObject", Some(include)),
            ("labelSelector", self.objects.as_deref()),
            ("fieldSelector", self.field_selector.as_deref()),
            ("continue", Some(next).filter(|next| !next.is_empty())),
        ];
        for (key, value) in given.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            query.extend(["&", key, "="]);
            query.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        query
    }

    fn show(&self, outcomes: Vec<Outcome<CollectedPages>>) -> Result<ExitCode> {
        let (mut parts, mut objects, mut failures) = (Vec::new(), BTreeMap::new(), Vec::new());
        for outcome in outcomes {
            match outcome.result {
                Ok(CollectedPages::Rows(part)) => parts.push((outcome.cluster, part)),
                Ok(CollectedPages::Objects(items)) => drop(objects.insert(outcome.cluster, items)),
                Err(failure) => failures.push(failure),
            }
        }
        match self.output {
            Some(Format::Name) => output::print(&names(&objects, self.all_namespaces))?,
            Some(Format::Json | Format::Yaml) => {
                let clusters = objects.iter();
                let clusters = clusters.map(|(cluster, items)| json!({"cluster": cluster.as_str(), "items": items}));
                let document = json!({"clusters": clusters.collect::<Vec<_>>()});
                output::print_document(&document, self.output == Some(Format::Yaml))?;
            }
            _ if parts.iter().all(|(_, part)| part.len() == 0) => {
                if failures.is_empty() {
                    output::say("No resources found");
                }
            }
            format => {
                let namespaces = self.all_namespaces && parts.iter().any(|(_, part)| part.has_namespaces());
                output::print(&tables::merged(parts, format == Some(Format::Wide), namespaces))?;
            }
        }
        Ok(failed(&failures))
    }
}

/// The object with its kind, which only `list` says of most of its objects.
fn typed(mut object: Value, list: &Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        let kind = list["kind"].as_str().unwrap_or_default();
        for (field, value) in
            [("kind", kind.strip_suffix("List").unwrap_or(kind)), ("apiVersion", text(&list["apiVersion"]))]
        {
            fields.entry(field).or_insert_with(|| value.into());
        }
    }
    object
}

/// `CLUSTER TYPE/NAME`, a line each, with the type as kubectl writes it. `namespaced`: and with the
/// namespace before it, if there is one.
fn names(objects: &BTreeMap<ClusterName, Vec<Value>>, namespaced: bool) -> String {
    let mut lines = String::new();
    for (cluster, items) in objects {
        for item in items {
            let metadata = &item["metadata"];
            let namespace = Some(text(&metadata["namespace"])).filter(|found| namespaced && !found.is_empty());
            let group = text(&item["apiVersion"]).split_once('/').map(|(group, _)| format!(".{group}"));
            let kind = text(&item["kind"]).to_lowercase() + &group.unwrap_or_default();
            let object = format!("{kind}/{}", text(&metadata["name"]));
            let words = [Some(cluster.as_str()), namespace, Some(object.as_str())];
            lines += &words.into_iter().flatten().map(text_table::tame).collect::<Vec<_>>().join(" ");
            lines.push('\n');
        }
    }
    lines
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Reports failures, with their clusters. Returns the exit code of the process.
pub fn failed(failures: &[Failure]) -> ExitCode {
    for failure in failures {
        let cluster = failure.cluster.as_ref().map_or("?", |cluster| cluster.as_str());
        let (cluster, cause) = (format!("cluster {cluster}"), trouble::cause(failure));
        // The gateway's own messages begin with the cluster.
        let cause = cause.strip_prefix(&cluster).map_or_else(|| format!(": {cause}"), str::to_owned);
        let remedy = trouble::remedy(failure);
        let remedy = if remedy.is_empty() { remedy } else { format!(" (remedy: {remedy})") };
        output::say(&format!("error: {cluster}{cause}{remedy}"));
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(Exit::Failed as u8) }
}
