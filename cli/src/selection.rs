//! Which clusters a command is about.

use api::cluster_name::ClusterName;

use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// Options of commands that are about many clusters.
#[derive(Debug, Clone, clap::Args)]
pub struct Selection {
    /// All clusters
    #[arg(long)]
    pub all: bool,
    /// Clusters whose labels match, as in env=prod,tier!=test
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "all")]
    pub selector: Option<String>,
}

// === impl Selection ===

impl Selection {
    /// The names of the selected clusters. Clusters selected by name are not looked up.
    pub async fn resolve(&self, session: &Session, named: Option<&str>) -> Result<Vec<ClusterName>> {
        match (named, &self.selector, self.all) {
            (Some(_), None, false) => names(named.unwrap_or_default()),
            (None, None, false) => {
                Err(Trouble::usage("no cluster is selected", "select clusters: --all, -l SELECTOR or NAME,NAME"))
            }
            (Some(_), ..) => {
                Err(Trouble::usage("clusters are selected twice", "give only one of names, --all and -l SELECTOR"))
            }
            (None, selector, _) => {
                let clusters = session.fleet.clusters(selector.as_deref().unwrap_or_default()).await?;
                if clusters.is_empty() {
                    return Err(Trouble::failed(
                        "no cluster matches",
                        "see `kubectl clusters list` for the registered ones, or register one with `kubectl clusters join`",
                    ));
                }
                let mut names: Vec<_> = clusters.into_iter().map(|cluster| cluster.name).collect();
                names.sort_unstable();
                Ok(names)
            }
        }
    }
}

/// Parses `NAME,NAME`. Returns each name once, sorted.
fn names(list: &str) -> Result<Vec<ClusterName>> {
    let mut names = list.split(',').map(name).collect::<Result<Vec<_>>>()?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Parses one name.
pub fn name(text: &str) -> Result<ClusterName> {
    ClusterName::parse(text)
        .map_err(|error| Trouble::usage(format!("{text:?} is not a cluster name"), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_told_once() {
        let told: Vec<_> = names("munich,berlin,munich").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["berlin", "munich"]);
        for wrong in ["", "berlin,", "Berlin", "a/b"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }
}
