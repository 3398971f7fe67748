//! `kubeconfig`: contexts that lead to clusters, through the hub or directly.

mod direct;
mod file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::cluster_name::ClusterName;
use kube::config::Kubeconfig;
use serde_json::Value;

use self::direct::Direct;
use self::file::{Lock, write};
use crate::selection::Selection;
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{contexts, output};

/// Contexts for clusters, through the hub.
///
/// Prints a kubeconfig with a context for each cluster, which goes through the hub as the user of
/// your hub's context, or directly to the member. It names that user and holds no credential: use
/// it together with your own kubeconfig, or merge it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters kubeconfig --all --prefix hub/ --merge    # into ~/.kube/config
  kubectl --context hub/berlin get pods
  kubectl clusters kubeconfig berlin --direct --user berlin-admin --prefix direct/ --merge
  kubectl clusters kubeconfig berlin,munich --prefix hub/ -o clusters.yaml
  KUBECONFIG=clusters.yaml:$HOME/.kube/config kubectl --context hub/berlin get pods")]
pub struct Contexts {
    /// Clusters, as NAME,NAME
    clusters: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Prefix of context names
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    direct: Direct,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Merge into the kubeconfig of the hub's context
    #[arg(long, conflicts_with = "output")]
    merge: bool,
    /// Overwrite contexts of the same name, and files that hold users
    #[arg(long)]
    force: bool,
}

// === impl Contexts ===

impl Contexts {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let clusters = self.selection.resolve(session, self.clusters.as_deref()).await?;
        let made = self.made(session, &clusters).await?;
        let count = made.contexts.len();
        if self.merge {
            let file = file::own(session)?;
            let _lock = Lock::on(&file)?;
            let mut own = contexts::read_alone(&file)?;
            self.refuse_shadows(&session.kubeconfig, &made)?;
            self.refuse_shadows(&own, &made)?;
            contexts::merge(&mut own, made);
            write(&file, &text(&own)?)?;
            output::say(&format!("{} in {}", output::count(count, "context"), file.display()));
        } else if let Some(file) = &self.output {
            self.refuse_shadows(&session.kubeconfig, &made)?;
            self.refuse_users(file)?;
            write(file, &text(&made)?)?;
            let file = file.display();
            let count = output::count(count, "context");
            output::say(&format!("{count} in {file}: put this file before your own in KUBECONFIG"));
        } else {
            output::print(&text(&made)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn made(&self, session: &Session, clusters: &[ClusterName]) -> Result<Kubeconfig> {
        let call = |cluster: &ClusterName| format!("{}{cluster}", self.prefix);
        if self.direct.wanted {
            return self.direct.made(session, clusters, call).await;
        }
        let context = contexts::named(&session.kubeconfig, Some(&session.context))?;
        contexts::through(&session.kubeconfig, context, clusters, call)
    }

    /// Refuses contexts that would shadow or replace others of the same name in `known`.
    fn refuse_shadows(&self, known: &Kubeconfig, made: &Kubeconfig) -> Result<()> {
        match contexts::shadowed(known, made).filter(|_| !self.force) {
            Some(name) => Err(Trouble::usage(
                format!("the kubeconfig already has another {name:?}"),
                "choose other names with --prefix, or overwrite it with --force",
            )),
            None => Ok(()),
        }
    }

    /// Refuses to overwrite credentials.
    fn refuse_users(&self, file: &Path) -> Result<()> {
        if self.force || contexts::read_alone(file)?.auth_infos.is_empty() {
            return Ok(());
        }
        Err(Trouble::usage(
            format!("{} exists, and holds users", file.display()),
            "choose another file, add to it with --kubeconfig and --merge, or overwrite it with --force",
        ))
    }
}

fn text(kubeconfig: &Kubeconfig) -> Result<String> {
    let mut document = serde_json::to_value(kubeconfig).map_err(|error| Trouble::failed(error.to_string(), ""))?;
    prune(&mut document);
    output::to_yaml(&document)
}

/// Removes null fields, as kubectl does.
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
