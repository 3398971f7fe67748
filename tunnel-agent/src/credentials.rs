//! The agent's authorities and its credential, as the files contain them when a link is made.
//!
//! While files are missing or broken, the last good content stays in use. A change is announced, so
//! that links with the old identity are replaced before it expires.

use std::sync::Arc;

use net::follow::{self, Complaints, Look};
use net::tls::client_files::{ClientFiles, ClientFilesError};
use net::tls::end::{End, InUse};
use parking_lot::Mutex;
use rustls::ClientConfig;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;

use crate::files::{Followed, TokenError, TokenFile};
use crate::metrics::Metrics;

/// The files and their last good content.
#[derive(Debug)]
pub struct Credentials {
    tls: Followed,
    token: Option<TokenFile>,
    state: Mutex<LastIdentity>,
    /// The generation of the last content; 0 if there was none.
    changes: watch::Sender<u64>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct LastIdentity {
    last: Option<Identity>,
    tls_number: u64,
    complaints: Complaints,
}

/// The identity of one link.
#[derive(Debug, Clone)]
pub struct Identity {
    pub config: Arc<ClientConfig>,
    pub token: Option<SecretString>,
    /// Starts at 1, and increases with every change.
    pub generation: u64,
}

/// Why no link can be made: the files never had usable content.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error(transparent)]
    Tls(#[from] ClientFilesError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

// === impl Credentials ===

impl Credentials {
    pub fn new(files: ClientFiles, token: Option<TokenFile>, metrics: Metrics) -> Self {
        Self { tls: Followed::new(files), token, state: Mutex::default(), changes: watch::Sender::new(0), metrics }
    }

    /// The identity for a link that is made now.
    pub fn current(&self) -> Result<Identity, CredentialsError> {
        self.look().or_else(|error| self.state.lock().last.clone().ok_or(error))
    }

    /// Follows the files forever.
    pub async fn follow(self: Arc<Self>) {
        let mut paths = self.tls.files().paths();
        paths.extend(self.token.as_ref().map(|token| token.path().to_owned()));
        let looks = move || paths.iter().map(|path| Look::at(path)).collect::<Vec<_>>();
        // If an identity is in use, `look` reports errors; otherwise the attempts to link do.
        follow::watch(looks, move |_, fresh| self.look().is_ok() && !fresh).await;
    }

    /// The generations, as they are read.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Announces that a refused credential may be accepted now.
    pub fn try_again(&self) {
        self.changes.send_modify(|_| ());
    }

    /// The identity in the files now. An error is logged once per cause.
    fn look(&self) -> Result<Identity, CredentialsError> {
        let mut state = self.state.lock();
        let LastIdentity { complaints, last, .. } = &mut *state;
        match self.read() {
            Ok((config, number, token)) => {
                complaints.clear();
                Ok(self.take(&mut state, config, number, token))
            }
            Err(error) => {
                if let Some(reason) = complaints.new_cause(&error) {
                    self.metrics.reload_failures.inc();
                    if last.is_some() {
                        tracing::warn!(reason, "cannot reload the credential, keeping the one in use");
                    }
                }
                Err(error)
            }
        }
    }

    fn read(&self) -> Result<(Arc<ClientConfig>, u64, Option<SecretString>), CredentialsError> {
        let (config, number) = self.tls.look()?;
        let token = self.token.as_ref().map(TokenFile::read).transpose()?;
        Ok((config, number, token))
    }

    fn take(
        &self,
        state: &mut LastIdentity,
        config: Arc<ClientConfig>,
        number: u64,
        token: Option<SecretString>,
    ) -> Identity {
        let last = state.last.as_ref();
        let same =
            last.filter(|last| state.tls_number == number && exposed(last.token.as_ref()) == exposed(token.as_ref()));
        let generation = match (same, last) {
            (Some(same), _) => same.generation,
            (None, last) => last.map_or(0, |last| last.generation) + 1,
        };
        if same.is_none() {
            if last.is_some() {
                tracing::info!("the credential or the tunnel-servers' CA has changed, replacing all links");
            }
            self.changes.send_replace(generation);
        }
        let identity = Identity { config, token, generation };
        state.tls_number = number;
        state.last = Some(identity.clone());
        identity
    }
}

impl InUse for Credentials {
    fn ends(&self) -> Vec<End> {
        self.tls.ends()
    }
}

fn exposed(token: Option<&SecretString>) -> Option<&str> {
    token.map(ExposeSecret::expose_secret)
}

#[cfg(test)]
mod tests {
    use kit::pki::Authority;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn changed_files_are_a_new_generation_and_missing_ones_leave_the_old() {
        let directory = tempfile::tempdir().unwrap();
        let (ca, token) = (directory.path().join("ca.crt"), directory.path().join("token"));
        let metrics = Metrics::register(&mut Registry::default());
        let files = ClientFiles { ca: Some(ca.clone()), identity: None };
        let credentials = Credentials::new(files, Some(TokenFile::new(token.clone())), metrics.clone());
        std::fs::write(&ca, Authority::new("one").root_pem()).unwrap();
        assert!(matches!(credentials.current(), Err(CredentialsError::Token(_))), "there is no token yet");
        std::fs::write(&token, "first").unwrap();
        let changes = credentials.changes();
        assert_eq!(credentials.current().unwrap().generation, 1);
        assert_eq!(credentials.current().unwrap().generation, 1, "nothing changed");
        std::fs::write(&token, "second\n").unwrap();
        let identity = credentials.current().unwrap();
        assert_eq!((identity.generation, exposed(identity.token.as_ref())), (2, Some("second")));
        assert_eq!((*changes.borrow(), changes.has_changed().unwrap()), (2, true));
        std::fs::remove_file(&token).unwrap();
        assert_eq!(credentials.current().unwrap().generation, 2, "what was read last stays in use");
        std::fs::write(&token, "second").unwrap();
        assert_eq!(credentials.current().unwrap().generation, 2);
        std::fs::write(&ca, Authority::new("two").root_pem()).unwrap();
        assert_eq!(credentials.current().unwrap().generation, 3);
        assert_eq!(metrics.reload_failures.get(), 2, "each cause once");
    }
}
