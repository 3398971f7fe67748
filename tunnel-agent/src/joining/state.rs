//! The state that the agent keeps between its runs: the files of a klusterlet's
//! `hub-kubeconfig-secret`, so that either can continue from the other's, and the request that it
//! waits for.
//!
//! Each file is replaced as a whole. Key and certificate are two files. The certificate is written
//! first, and until the key is written, too, the key also stays in place as the request's. If that
//! key fits the certificate, the next read takes it over. So whenever the agent is interrupted, one
//! of the two pairs is complete.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use api::ocm_agent::is_agent;
use net::follow;
use net::random::identifier;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::certificate::Certificate;
use super::dialer::HubWay;
use super::request::{Pending, public_key};

pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";
pub const KUBECONFIG: &str = "kubeconfig";
pub const CLUSTER_NAME: &str = "cluster-name";
pub const AGENT_NAME: &str = "agent-name";
/// The name on the hub, and the key, of a request without a certificate.
const PENDING_NAME: &str = "request-name";
const PENDING_KEY: &str = "request-key";
/// All files of the state.
pub const FILES: [&str; 7] = [CERTIFICATE, KEY, KUBECONFIG, CLUSTER_NAME, AGENT_NAME, PENDING_NAME, PENDING_KEY];
/// Only the agent may read and write them.
const MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;

/// The state directory.
#[derive(Debug, Clone)]
pub struct StateDirectory(PathBuf);

/// A file of the state cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {}", net::words::io(.source))]
pub struct StateError {
    path: PathBuf,
    source: io::Error,
}

// === impl StateDirectory ===

impl StateDirectory {
    /// Creates the directory if it does not exist. Refuses one to which others may write: a user
    /// that replaces its key and certificate can act as the agent.
    pub fn open(directory: &Path) -> Result<Self, StateError> {
        let wrong = |source| StateError { path: directory.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(wrong)?;
        let found = fs::metadata(directory).map_err(wrong)?;
        let own = rustix::process::geteuid().as_raw();
        if found.uid() != own {
            let text = format!("it belongs to user {}, and the agent is user {own}", found.uid());
            return Err(wrong(io::Error::other(format!("{text}: give it a directory below that does not exist yet"))));
        }
        if found.mode() & OTHERS_WRITE != 0 {
            let mode = found.mode() & 0o777;
            return Err(wrong(io::Error::other(format!("others may write to it (mode {mode:03o}): chmod 700"))));
        }
        Ok(Self(directory.to_owned()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The certificate for `cluster`, if it exists together with its key and a kubeconfig. Its
    /// validity, and the hub that it is for, are not checked.
    pub fn certificate(&self, cluster: &str) -> Result<Option<Certificate>, StateError> {
        let files = self.files()?;
        let certificate = certificate(&files, cluster);
        if certificate.is_some() {
            return Ok(certificate);
        }
        let mut taken = files;
        let Some(key) = taken.get(PENDING_KEY).cloned() else { return Ok(None) };
        taken.insert(KEY.to_owned(), key.clone());
        let certificate = self::certificate(&taken, cluster);
        if certificate.is_some() {
            self.write(KEY, &key)?;
            self.forget_request()?;
        }
        Ok(certificate)
    }

    /// The agent's name, which is created at its first use. Another cluster's agent has another
    /// name.
    pub fn agent_name(&self, cluster: &str) -> Result<String, StateError> {
        let is_same_cluster = self.read_text(CLUSTER_NAME)?.is_none_or(|known| known.trim() == cluster);
        let known = self.read_text(AGENT_NAME)?.map(|name| name.trim().to_owned()).filter(|name| is_agent(name));
        if let Some(name) = known.filter(|_| is_same_cluster) {
            self.write(CLUSTER_NAME, cluster.as_bytes())?;
            return Ok(name);
        }
        let name = identifier();
        self.forget_request()?;
        self.write(AGENT_NAME, name.as_bytes())?;
        self.write(CLUSTER_NAME, cluster.as_bytes())?;
        Ok(name)
    }

    /// The request without a certificate yet.
    pub fn request(&self) -> Result<Option<Pending>, StateError> {
        let (name, key) = (self.read_text(PENDING_NAME)?, self.read_text(PENDING_KEY)?);
        Ok(name.zip(key).map(|(name, key)| Pending { name: name.trim().to_owned(), key: key.into() }))
    }

    /// Saves a request, so that a restarted agent does not create a second one.
    pub fn remember_request(&self, pending: &Pending) -> Result<(), StateError> {
        self.write(PENDING_KEY, pending.key.expose_secret().as_bytes())?;
        self.write(PENDING_NAME, pending.name.as_bytes())
    }

    pub fn forget_request(&self) -> Result<(), StateError> {
        self.remove(PENDING_NAME)?;
        self.remove(PENDING_KEY)
    }

    /// Takes over the certificate that was issued for `pending`.
    pub fn take(&self, pending: &Pending, certificate: &[u8], hub: &HubWay) -> Result<(), StateError> {
        self.write_kubeconfig(hub)?;
        self.remember_request(pending)?;
        self.write(CERTIFICATE, certificate)?;
        self.write(KEY, pending.key.expose_secret().as_bytes())?;
        self.forget_request()
    }

    /// Writes the kubeconfig, unless the file already has this content.
    pub fn write_kubeconfig(&self, hub: &HubWay) -> Result<(), StateError> {
        let wanted = kubeconfig(hub).to_string();
        if self.read(KUBECONFIG)?.is_some_and(|known| known == wanted.as_bytes()) {
            return Ok(());
        }
        self.write(KUBECONFIG, wanted.as_bytes())
    }

    /// The existing files, by name.
    pub fn files(&self) -> Result<BTreeMap<String, Vec<u8>>, StateError> {
        let mut files = BTreeMap::new();
        for name in FILES {
            if let Some(contents) = self.read(name)? {
                files.insert(name.to_owned(), contents);
            }
        }
        Ok(files)
    }

    /// Replaces all files by these; files that do not belong to a state are left out.
    pub fn replace(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<(), StateError> {
        for name in FILES {
            match files.get(name) {
                Some(contents) => self.write(name, contents)?,
                None => self.remove(name)?,
            }
        }
        Ok(())
    }

    /// Removes the directory as far as possible.
    pub fn discard(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.path(name);
        match follow::read(&path, follow::LONGEST) {
            Ok(contents) => Ok(Some(contents)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError { path, source }),
        }
    }

    fn read_text(&self, name: &str) -> Result<Option<String>, StateError> {
        Ok(self.read(name)?.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Writes the whole file or nothing: to a temporary file next to it, which is then renamed.
    fn write(&self, name: &str, contents: &[u8]) -> Result<(), StateError> {
        let (path, new) = (self.path(name), self.path(&format!(".{name}.new")));
        let written = || -> io::Result<()> {
            let _ = fs::remove_file(&new); // left by an agent that was killed
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
            file.write_all(contents)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            // Otherwise a crash of the machine could undo the rename, but keep later writes.
            fs::File::open(&self.0)?.sync_all()
        };
        written().map_err(|source| StateError { path: path.clone(), source })
    }

    fn remove(&self, name: &str) -> Result<(), StateError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StateError { path, source }),
            _ => Ok(()),
        }
    }
}

/// The certificate among the files of a state, as [`StateDirectory::certificate`].
pub fn certificate(files: &BTreeMap<String, Vec<u8>>, cluster: &str) -> Option<Certificate> {
    let certificate = Certificate::parse(files.get(CERTIFICATE)?).ok()?;
    let key = public_key(&SecretString::from(str::from_utf8(files.get(KEY)?).ok()?));
    let fits = certificate.agent.cluster == cluster && key.as_ref() == Some(&certificate.public_key);
    (fits && files.contains_key(KUBECONFIG)).then_some(certificate)
}

/// The kubeconfig in JSON, which is YAML. Key and certificate are the files next to it. A
/// klusterlet continues from it only if the cluster's name, its URL, its CA and its proxy are
/// spelled as in the bootstrap kubeconfig.
fn kubeconfig(HubWay { address: hub, wording, proxy }: &HubWay) -> Value {
    use base64::Engine as _;
    let name = if wording.name.is_empty() { "hub" } else { &wording.name };
    let mut cluster = json!({"server": wording.server.as_ref().unwrap_or(&hub.url)});
    if let Some(ca) = wording.ca.as_ref().or(hub.ca.as_ref()) {
        cluster["certificate-authority-data"] = base64::engine::general_purpose::STANDARD.encode(ca).into();
    }
    if let Some(name) = &hub.tls_server_name {
        cluster["tls-server-name"] = name.as_str().into();
    }
    if let Some(proxy) = proxy {
        // With its password, as it was supplied: the file is as secret as the key next to it.
        cluster["proxy-url"] = proxy.expose_secret().into();
    }
    if hub.is_insecure {
        cluster["insecure-skip-tls-verify"] = true.into();
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub", "preferences": {},
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": "agent", "user": {"client-certificate": CERTIFICATE, "client-key": KEY}}],
        "contexts": [{"name": "hub", "context": {"cluster": name, "user": "agent", "namespace": "default"}}],
    })
}

#[cfg(test)]
mod tests;
