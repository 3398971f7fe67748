//! A token in a file, read again when the file changes.

use std::io;
use std::path::{Path, PathBuf};

use net::follow;
use net::words;
use secrecy::{ExposeSecret as _, SecretString};

/// Limit of a token's file, in bytes: a longer one is malformed.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// A bearer token in a file.
#[derive(Debug)]
pub struct TokenFile {
    pub(super) path: PathBuf,
}

/// Why there is no token. The texts contain nothing of the file.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot read the token file {path}: {}", words::io(.source))]
    Read { path: PathBuf, source: io::Error },
    #[error("the token file {0} is empty")]
    Empty(PathBuf),
    #[error("the token file {0} holds no token: expected one line of visible ASCII, at most 64 KiB")]
    Malformed(PathBuf),
}

// === impl TokenFile ===

impl TokenFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The token without surrounding white space. Read as bytes, so that no error can quote it.
    pub fn read(&self) -> Result<SecretString, TokenError> {
        let malformed = || TokenError::Malformed(self.path.clone());
        let bytes = follow::read(&self.path, LONGEST_TOKEN).map_err(|source| match source.kind() {
            io::ErrorKind::FileTooLarge => malformed(),
            _ => TokenError::Read { path: self.path.clone(), source },
        })?;
        let token = SecretString::from(String::from_utf8(bytes).map_err(|_| malformed())?.trim());
        if token.expose_secret().is_empty() {
            return Err(TokenError::Empty(self.path.clone()));
        }
        let visible = token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
        if visible { Ok(token) } else { Err(malformed()) }
    }
}
