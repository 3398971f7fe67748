//! The kubeconfigs of the commands: one that all share, with the person's users, and one for each
//! cluster, with the context to use.
//!
//! All are in one directory, and no file of the person's own is named: kubectl skips missing files,
//! and would take the context of those that exist, which is the hub's.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use api::cluster_name::ClusterName;
use kube::config::{AuthInfo, Kubeconfig};
use tempfile::TempDir;

use crate::contexts;
use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// Name of the shared file. No cluster has it, because clusters' names have no capitals.
const SHARED: &str = "OWN";

/// The directory. It is deleted when this is dropped.
pub struct Kubeconfigs {
    directory: TempDir,
}

// === impl Kubeconfigs ===

impl Kubeconfigs {
    /// Creates the directory, and writes the shared file.
    pub fn new(session: &Session) -> Result<Self> {
        let directory = tempfile::tempdir().map_err(|error| {
            Trouble::failed(format!("cannot create temporary files: {error}"), "set TMPDIR to a writable directory")
        })?;
        write(&directory.path().join(SHARED), &without_context(session.kubeconfig.clone()))?;
        Ok(Self { directory })
    }

    /// The value of `KUBECONFIG` for the cluster's command. Its current context is the cluster's,
    /// and names the hub's user.
    pub fn of(&self, session: &Session, cluster: &ClusterName) -> Result<OsString> {
        let context = contexts::named(&session.kubeconfig, Some(&session.context))?;
        let call = |cluster: &ClusterName| format!("kubectl-clusters/{cluster}");
        let mut made = contexts::through(&session.kubeconfig, context, std::slice::from_ref(cluster), call)?;
        for place in made.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            absolute(&mut place.certificate_authority);
        }
        made.current_context = Some(call(cluster));
        let path = self.directory.path().join(cluster.as_str());
        write(&path, &made)?;
        // The first file sets the current context, the other has the credential.
        let both = [path, self.directory.path().join(SHARED)];
        std::env::join_paths(both).map_err(|error| {
            Trouble::failed(format!("cannot create temporary files: {error}"), "set TMPDIR to a writable directory")
        })
    }
}

/// The kubeconfig without a current context, which a command could take for its own, and with
/// absolute paths, which lead to the same files from every directory.
fn without_context(mut own: Kubeconfig) -> Kubeconfig {
    own.current_context = None;
    for cluster in own.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        absolute(&mut cluster.certificate_authority);
    }
    for user in own.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        let AuthInfo { client_certificate, client_key, token_file, exec, .. } = user;
        [client_certificate, client_key, token_file].into_iter().for_each(absolute);
        // A name without a separator is looked up in PATH, as client-go does.
        if let Some(exec) = exec.as_mut().filter(|exec| exec.command.iter().any(|path| path.contains(MAIN_SEPARATOR))) {
            absolute(&mut exec.command);
        }
    }
    own
}

fn absolute(path: &mut Option<String>) {
    let given = path.as_ref().map(PathBuf::from);
    if let Some(whole) = given.and_then(|given| std::path::absolute(given).ok()?.to_str().map(str::to_owned)) {
        *path = Some(whole);
    }
}

/// Writes a file for its owner alone, because it holds credentials.
fn write(path: &Path, kubeconfig: &Kubeconfig) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        Trouble::failed(format!("cannot write {}: {error}", path.display()), "set TMPDIR to a writable directory")
    };
    let text = serde_json::to_vec(kubeconfig).map_err(|error| failed(&error))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| failed(&error))?;
    file.write_all(&text).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_persons_own_is_a_current_context() {
        let own = r#"{"current-context": "hub",
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "jane"}}],
            "clusters": [{"name": "hub", "cluster": {"server": "https://hub", "certificate-authority": "ca.crt"}}],
            "users": [{"name": "jane", "user": {"token": "t", "tokenFile": "t.txt", "exec": {"command": "./login"}}},
                {"name": "joe", "user": {"exec": {"command": "aws", "interactiveMode": "Never"}}}]}"#;
        let made = without_context(Kubeconfig::from_yaml(own).unwrap());
        assert_eq!((made.current_context.as_deref(), made.contexts.len()), (None, 1));
        let here = |file: &str| std::path::absolute(file).unwrap().to_str().map(str::to_owned);
        assert_eq!(made.clusters[0].cluster.as_ref().unwrap().certificate_authority, here("ca.crt"));
        let user = |place: usize| made.auth_infos[place].auth_info.clone().unwrap();
        assert_eq!((user(0).token_file, user(0).exec.unwrap().command), (here("t.txt"), here("login")));
        assert_eq!(user(1).exec.unwrap().command.as_deref(), Some("aws"));
        let text = serde_json::to_string(&made).unwrap();
        assert!(text.contains(r#""token":"t""#), "its own users go with it");
    }
}
