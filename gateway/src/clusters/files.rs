//! Clusters without a hub: manifests and kubeconfig contexts, followed as their files change.

use std::collections::HashSet;
use std::path::PathBuf;

use super::poll::{INTERVAL, Look};
use super::{Registry, directory, kubeconfig};

/// Where to look.
#[derive(Debug, Clone)]
pub struct Files {
    pub directory: Option<PathBuf>,
    pub kubeconfig: Option<PathBuf>,
}

/// Follows the files for ever. What cannot be read is logged once per change, and harms nothing else.
pub async fn run(files: Files, mut registry: Registry) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut last = None;
    let mut generation = 0;
    loop {
        interval.tick().await;
        let now = files.look();
        if last.as_ref() == Some(&now) {
            continue;
        }
        generation += 1;
        files.load(&mut registry, &now, generation);
        last = Some(now);
    }
}

/// All files as they look now, or why the directory cannot be listed.
type State = (Result<Vec<Look>, String>, Option<Look>);

// === impl Files ===

impl Files {
    fn look(&self) -> State {
        let manifests = match &self.directory {
            Some(directory) => directory::look(directory).map_err(|error| error.to_string()),
            None => Ok(Vec::new()),
        };
        (manifests, self.kubeconfig.as_deref().map(Look::at))
    }

    fn load(&self, registry: &mut Registry, state: &State, generation: u64) {
        let (manifests, kubeconfig) = state;
        let mut names = HashSet::new();
        match manifests {
            Ok(manifests) => {
                for manifest in manifests {
                    names.extend(directory::apply(registry, manifest.path(), generation));
                }
            }
            Err(reason) => {
                // Keep what is known: an unreadable directory does not mean that the clusters are gone.
                let directory = self.directory.as_deref().map(|path| path.display().to_string());
                tracing::error!(directory, reason, "cannot list the clusters directory, the last state stays");
                return;
            }
        }
        if let Some(kubeconfig) = kubeconfig {
            names.extend(kubeconfig::apply(registry, kubeconfig.path(), generation));
        }
        registry.saw_resource_version(&generation.to_string());
        registry.retain(&names);
        registry.publish(true);
    }
}
