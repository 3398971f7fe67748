//! What this program does besides controlling: it prints kubeconfigs for members and the credential
//! that they request, and removes the clusters that sources registered.

mod credential;
mod kubeconfig;
mod remove_clusters;

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Subcommand;

pub use self::credential::Credential;
pub use self::kubeconfig::Contexts;
pub use self::remove_clusters::RemoveClusters;

#[derive(Debug, Subcommand)]
pub enum Command {
    Credential(Credential),
    Kubeconfig(Contexts),
    RemoveClusters(RemoveClusters),
}

// === impl Command ===

impl Command {
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Credential(credential) => print(&credential.text()?),
            Self::Kubeconfig(contexts) => print(&contexts.text()?),
            Self::RemoveClusters(clusters) => clusters.run(),
        }
    }
}

/// A reader that closes the pipe has read enough.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
