//! Clusters without a hub: follows manifests and kubeconfig contexts in files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use net::follow::{self, Look};
use net::words;

use super::{Registry, directory, kubeconfig};

/// The files to follow.
#[derive(Debug, Clone)]
pub struct Files {
    pub directory: Option<PathBuf>,
    pub kubeconfig: Option<PathBuf>,
}

/// Follows the files forever. Logs an unreadable file once per change, and continues with the
/// others.
pub async fn run(files: Files, mut registry: Registry) {
    let mut held = NamesByFile::new();
    let mut generation = 0;
    let looked_at = files.clone();
    let load = move |now: &Looked, _| {
        generation += 1;
        files.load(&mut registry, &mut held, now, generation);
        true
    };
    follow::watch(move || looked_at.look(), load).await;
}

/// The clusters of each file when it was last readable. A file that is unreadable now may be half
/// written, which does not mean that its clusters are gone.
type NamesByFile = HashMap<PathBuf, Vec<String>>;

/// The current state of all files, or why the directory cannot be listed.
type Looked = (Result<Vec<Look>, String>, Option<Look>);

// === impl Files ===

impl Files {
    fn look(&self) -> Looked {
        let manifests = match &self.directory {
            Some(directory) => directory::look(directory).map_err(|error| words::io(&error)),
            None => Ok(Vec::new()),
        };
        (manifests, self.kubeconfig.as_deref().map(Look::at))
    }

    fn load(&self, registry: &mut Registry, held: &mut NamesByFile, state: &Looked, generation: u64) {
        let (manifests, kubeconfig) = state;
        let manifests = match manifests {
            Ok(manifests) => manifests,
            Err(reason) => {
                // An unreadable directory does not mean that its clusters are gone, either.
                let directory = self.directory.as_deref().map(|path| path.display().to_string());
                return tracing::error!(
                    directory,
                    reason,
                    "cannot list the clusters directory, keeping the last state"
                );
            }
        };
        let mut now = NamesByFile::new();
        let mut complete = true;
        for path in manifests.iter().map(Look::path) {
            let read = directory::apply(registry, path, generation);
            match names(read, path, held) {
                Some(names) => drop(now.insert(path.to_owned(), names)),
                None => complete = false,
            }
        }
        if let Some(path) = kubeconfig.as_ref().map(Look::path) {
            let read = kubeconfig::apply(registry, path, generation);
            match names(read, path, held) {
                Some(names) => drop(now.insert(path.to_owned(), names)),
                None => complete = false,
            }
        }
        *held = now;
        registry.saw_resource_version(&generation.to_string());
        registry.retain(&held.values().flatten().cloned().collect::<HashSet<_>>());
        registry.publish(complete);
    }
}

/// The clusters of a file, now or when it was last readable. `None` if it never was: then its
/// clusters are unknown, not absent.
fn names(read: Result<Vec<String>, String>, path: &Path, held: &mut NamesByFile) -> Option<Vec<String>> {
    match read {
        Ok(names) => Some(names),
        Err(reason) => {
            tracing::warn!(file = %path.display(), reason, "file skipped, its clusters stay unchanged");
            held.remove(path)
        }
    }
}
