//! Files that may be missing or broken for a while: they are read at each use, and the last good
//! content stays in use.

mod token;

use std::sync::Arc;

use net::follow::Complaints;
use net::tls::client_files::{ClientFiles, ClientFilesError, FollowedClient};
use net::tls::end::{End, InUse};
use parking_lot::Mutex;
use rustls::ClientConfig;

pub use self::token::{TokenError, TokenFile};

/// Trust and certificate of the dialling side, which need not exist at the start.
#[derive(Debug)]
pub struct Followed {
    files: ClientFiles,
    state: Mutex<LastRead>,
}

#[derive(Debug, Default)]
struct LastRead {
    client: Option<Arc<FollowedClient>>,
    complaints: Complaints,
}

// === impl Followed ===

impl Followed {
    pub fn new(files: ClientFiles) -> Self {
        Self { files, state: Mutex::default() }
    }

    pub fn files(&self) -> &ClientFiles {
        &self.files
    }

    /// The content of the files now, and a number that increases with each change. Without usable
    /// content: the earlier content, with the error, which is new only once per cause.
    pub fn look(&self) -> Result<(Arc<ClientConfig>, u64), ClientFilesError> {
        let mut state = self.state.lock();
        let client = match &state.client {
            Some(client) => client,
            None => state.client.insert(FollowedClient::load(self.files.clone())?),
        };
        client.reload()?;
        let current = client.current();
        Ok((Arc::clone(&current.config), current.number))
    }

    /// As [`Followed::look`], but returns an error only if the files never had usable content;
    /// otherwise the error is logged once per cause.
    pub fn read(&self) -> Result<(Arc<ClientConfig>, u64), ClientFilesError> {
        match self.look() {
            Ok(current) => {
                self.state.lock().complaints.clear();
                Ok(current)
            }
            Err(error) => {
                let mut state = self.state.lock();
                let Some(client) = state.client.clone() else { return Err(error) };
                if let Some(reason) = state.complaints.new_cause(&error) {
                    tracing::warn!(reason, "cannot reload certificates, keeping those in use");
                }
                let current = client.current();
                Ok((Arc::clone(&current.config), current.number))
            }
        }
    }
}

impl InUse for Followed {
    fn ends(&self) -> Vec<End> {
        self.state.lock().client.as_ref().map(|client| client.ends()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_token_is_one_line_and_never_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::new(directory.path().join("token"));
        assert!(matches!(file.read(), Err(TokenError::Read { .. })));
        std::fs::write(&file.path, " a.b-c \n").unwrap();
        assert_eq!(file.read().unwrap().expose_secret(), "a.b-c");
        for (wrong, empty) in [("\n", true), ("one\ntwo", false), ("t\u{e4}st", false)] {
            std::fs::write(&file.path, wrong).unwrap();
            let error = file.read().unwrap_err();
            assert_eq!(matches!(error, TokenError::Empty(_)), empty, "{error}");
            assert!(!error.to_string().contains("two"), "{error}");
        }
        std::fs::write(&file.path, "x".repeat(65 * 1024)).unwrap();
        assert!(matches!(file.read(), Err(TokenError::Malformed(_))));
    }

    #[test]
    fn files_that_are_missing_at_the_start_are_used_once_they_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.crt");
        let followed = Followed::new(ClientFiles { ca: Some(path.clone()), identity: None });
        assert!(followed.read().unwrap_err().to_string().contains("ca.crt"));
        std::fs::write(&path, kit::pki::Authority::new("one").root_pem()).unwrap();
        assert_eq!(followed.read().unwrap().1, 0);
        std::fs::write(&path, kit::pki::Authority::new("two").root_pem()).unwrap();
        assert_eq!(followed.read().unwrap().1, 1);
        std::fs::remove_file(&path).unwrap();
        assert!(followed.look().is_err());
        assert_eq!(followed.read().unwrap().1, 1, "the last good ones stay in use");
    }
}
