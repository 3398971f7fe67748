//! A client certificate that is read again when its files change.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{ClientFiles, ClientFilesError, Generation};
use crate::follow;
use crate::tls::end::{End, InUse};

/// The configuration in use, replaced by [`FollowedClient::follow`].
#[derive(Debug)]
pub struct FollowedClient {
    files: ClientFiles,
    current: ArcSwap<Generation>,
}

// === impl FollowedClient ===

impl FollowedClient {
    /// Reads the files once. Fails if they cannot be used.
    pub fn load(files: ClientFiles) -> Result<Arc<Self>, ClientFilesError> {
        let read = files.read()?;
        let config = files.config(&read)?;
        Ok(Arc::new(Self { files, current: ArcSwap::from_pointee(Generation { config, number: 0, read }) }))
    }

    pub fn current(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Reads the files. True if they have changed and are in use now.
    pub fn reload(&self) -> Result<bool, ClientFilesError> {
        let read = self.files.read()?;
        let current = self.current.load();
        if read == current.read {
            return Ok(false);
        }
        let config = self.files.config(&read)?;
        self.current.store(Arc::new(Generation { config, number: current.number + 1, read }));
        Ok(true)
    }

    /// Follows the files forever, like [`follow::follow`].
    pub async fn follow(self: Arc<Self>, failed: impl Fn() + Send + 'static) {
        let files = self.files.paths();
        follow::follow("certificates for dialling", files, move || self.reload(), failed).await;
    }
}

impl InUse for FollowedClient {
    fn ends(&self) -> Vec<End> {
        let current = self.current.load();
        let shown = self.files.identity.iter().zip(&current.read.identity);
        shown.filter_map(|(files, (certificate, _))| End::in_pem(&files.certificate, certificate)).collect()
    }
}
