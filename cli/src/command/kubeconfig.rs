//! `kubeconfig`: contexts that go through the hub.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::cluster_name::ClusterName;
use api::{GROUP, VERSION};
use fleet::{Failure, Kind, Outcome};
use kube::config::Kubeconfig;
use serde_json::Value;

use crate::progress::Line;
use crate::selection::Selection;
use crate::session::{self, Session};
use crate::trouble::{Result, Trouble};
use crate::{contexts, output};

/// Prints a kubeconfig with a context for each cluster, which goes through the hub as the user of
/// your hub's context, or straight to the member. It names that user and holds no credential: use
/// it beside your own, or merge it into your own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters kubeconfig --all --merge                 # into ~/.kube/config
  kubectl --context berlin get pods
  kubectl clusters kubeconfig berlin --direct --user berlin-admin --prefix direct/ --merge
  kubectl clusters kubeconfig berlin,munich --prefix hub/ -o clusters.yaml
  KUBECONFIG=clusters.yaml:$HOME/.kube/config kubectl --context hub/berlin get pods")]
pub struct Contexts {
    /// NAME,NAME: clusters
    clusters: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Before the cluster's name in that of its context
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Straight to the members, not through the hub
    #[arg(long)]
    direct: bool,
    /// User of your kubeconfig as whom [default: the one of the hub's context]
    #[arg(long, value_name = "NAME", requires = "direct")]
    user: Option<String>,
    /// Write to a file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add to the kubeconfig that the hub's context is from
    #[arg(long, conflicts_with = "output")]
    merge: bool,
    /// Replace contexts of the same name that lead elsewhere
    #[arg(long, requires = "merge")]
    force: bool,
}

// === impl Contexts ===

impl Contexts {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let clusters = self.selection.resolve(session, self.clusters.as_deref()).await?;
        let made = self.made(session, &clusters).await?;
        let count = made.contexts.len();
        if self.merge {
            let file = own_file(session)?;
            let mut own = contexts::read_alone(&file)?;
            contexts::merge(&mut own, made, self.force)?;
            write(&file, &text(&own)?)?;
            output::say(&format!("{count} contexts in {}", file.display()));
        } else if let Some(file) = &self.output {
            write(file, &text(&made)?)?;
            let file = file.display();
            output::say(&format!("{count} contexts in {file}: put it before your own file in KUBECONFIG"));
        } else {
            output::print(&text(&made)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn made(&self, session: &Session, clusters: &[ClusterName]) -> Result<Kubeconfig> {
        let context = contexts::named(&session.kubeconfig, Some(&session.context))?;
        let call = |cluster: &ClusterName| format!("{}{cluster}", self.prefix);
        if !self.direct {
            return contexts::through(&session.kubeconfig, context, clusters, call);
        }
        let (_, inner) = contexts::parts(&session.kubeconfig, context)?;
        let user = self.user.as_deref().or(inner.user.as_deref());
        if !session.kubeconfig.auth_infos.iter().any(|known| Some(known.name.as_str()) == user) {
            let what = format!("the kubeconfig has no user {:?}", user.unwrap_or_default());
            return Err(Trouble::usage(what, "name one of `kubectl config get-users` with --user"));
        }
        let mut places = Vec::new();
        for (name, place) in places_of(session, clusters).await? {
            match place {
                Some(place) => places.push((call(&name), place)),
                None => output::say(&format!("{name} is left out: it has no address, its agents dial out")),
            }
        }
        if places.is_empty() {
            return Err(Trouble::failed(
                "no cluster can be reached directly",
                "leave out --direct: go through the hub",
            ));
        }
        Ok(contexts::leading(places, user))
    }
}

/// Where each cluster is, as far as it has a place.
async fn places_of(
    session: &Session,
    clusters: &[ClusterName],
) -> Result<Vec<(ClusterName, Option<kube::config::Cluster>)>> {
    let asked = fleet::each(clusters.to_vec(), session.limits(), |name| async move {
        let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{name}");
        let body = session::get(session.hub(), &path, session::JSON).await?;
        let object = serde_json::from_slice(&body).map_err(|_| Failure::own("the hub's answer cannot be read"))?;
        Ok::<_, Failure>(contexts::place(&object))
    });
    let mut line = Line::new("looked up");
    let outcomes = asked.in_order(|progress, event| line.tell(progress, event)).await;
    let place = |outcome: Outcome<_>| Ok((outcome.cluster, outcome.result.map_err(unseen)?));
    outcomes.into_iter().map(place).collect()
}

/// To see where a cluster is takes another right than to use it.
fn unseen(failure: Failure) -> Trouble {
    let forbidden = failure.kind == Kind::Answered(403);
    let trouble = Trouble::from(failure);
    if forbidden {
        trouble.remedied("ask the hub's administrator for the verb get on clustergateways")
    } else {
        trouble
    }
}

fn text(kubeconfig: &Kubeconfig) -> Result<String> {
    let mut document = serde_json::to_value(kubeconfig).map_err(|error| Trouble::failed(error.to_string(), ""))?;
    prune(&mut document);
    output::to_yaml(&document)
}

/// Fields that say nothing are left out, as kubectl leaves them out.
fn prune(document: &mut Value) {
    if let Value::Object(fields) = document {
        fields.retain(|_, value| !value.is_null());
    }
    match document {
        Value::Object(fields) => fields.values_mut().for_each(prune),
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// The first file of those that were read, where kubectl puts new contexts.
fn own_file(session: &Session) -> Result<PathBuf> {
    if let Some(file) = &session.options.kubeconfig {
        return Ok(file.clone());
    }
    let listed = std::env::var_os("KUBECONFIG");
    let first = listed.as_ref().and_then(|list| std::env::split_paths(list).find(|path| !path.as_os_str().is_empty()));
    let home = || Some(std::env::home_dir()?.join(".kube/config"));
    first.or_else(home).ok_or_else(|| Trouble::usage("there is no home directory", "name the file with --kubeconfig"))
}

/// In one step, and for the owner alone: a kubeconfig holds credentials, and others read it now.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |error: std::io::Error| {
        Trouble::failed(format!("cannot write {}: {error}", path.display()), "see that you may write there")
    };
    // A link stays a link.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
