//! The directory from which the gateway learns its clusters: one Secret manifest for each member.
//!
//! The same labels and keys as a Secret on a hub. Files appear whole (written aside, then renamed),
//! so a reader never sees half a credential.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use api::secret::{ClusterEndpoint, ClusterSecret, Credential, Endpoint, Trust};

use crate::{member::Member, private_file};

/// A directory of Secret manifests.
#[derive(Debug)]
pub struct Manifests {
    directory: PathBuf,
}

// === impl Manifests ===

impl Manifests {
    /// Creates the directory, readable by its owner only.
    pub fn create(directory: PathBuf) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
        Ok(Self { directory })
    }

    /// Directory of the manifests.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a member that the gateway dials, or replaces its manifest.
    pub fn add(&self, member: &Member) -> io::Result<()> {
        let endpoint = format!("https://{}", member.address());
        let endpoint = Endpoint::parse(&endpoint, false).map_err(io::Error::other)?;
        self.write(member, ClusterEndpoint::at(endpoint))
    }

    /// Adds a member that only its agent reaches: the manifest says no address.
    pub fn add_tunnelled(&self, member: &Member) -> io::Result<()> {
        self.write(member, ClusterEndpoint::ClusterProxy)
    }

    fn write(&self, member: &Member, endpoint: ClusterEndpoint) -> io::Result<()> {
        let name = member.name();
        let trust = Trust::Bundle(member.ca_pem().into());
        let secret = ClusterSecret::new(endpoint, trust, Credential::Token(member.token().clone()));
        let manifest = secret.document(None, name).map_err(io::Error::other)?;
        // The name of the unfinished file has no extension that a reader of manifests would take.
        let unfinished = self.directory.join(format!(".{name}.unfinished"));
        let mut file = private_file::create(&unfinished)?;
        serde_json::to_writer_pretty(&mut file, &manifest)?;
        file.flush()?;
        fs::rename(unfinished, self.path(name))
    }

    /// Removes a member.
    pub fn remove(&self, member: &Member) -> io::Result<()> {
        fs::remove_file(self.path(member.name()))
    }

    /// The manifest of the cluster `name`, whether there is one or not.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use secrecy::SecretString;
    use serde_json::Value;

    use super::*;
    use crate::member::{LIMA, Pace};

    #[tokio::test]
    async fn a_manifest_has_what_it_takes_to_reach_the_member() {
        let parent = tempfile::tempdir().unwrap();
        let manifests = Manifests::create(parent.path().join("clusters")).unwrap();
        let member = Member::start(&LIMA, SecretString::from("sesame"), Pace::Manual).await;
        manifests.add(&member).unwrap();
        let written: Value = serde_json::from_slice(&fs::read(manifests.path("lima")).unwrap()).unwrap();
        let data =
            |key: &str| String::from_utf8(STANDARD.decode(written["data"][key].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(data("endpoint"), format!("https://{}", member.address()));
        assert_eq!((data("ca.crt").as_str(), data("token").as_str()), (member.ca_pem(), "sesame"));
        assert_eq!(fs::read_dir(manifests.directory()).unwrap().count(), 1, "nothing unfinished is left");
        manifests.add_tunnelled(&member).unwrap();
        let written: Value = serde_json::from_slice(&fs::read(manifests.path("lima")).unwrap()).unwrap();
        assert!(
            written["data"]["endpoint"].is_null() && written["data"]["token"].is_string(),
            "an address is given away"
        );
        manifests.remove(&member).unwrap();
        assert_eq!(fs::read_dir(manifests.directory()).unwrap().count(), 0);
    }
}
