//! Our own programs, as they are shipped.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hub_tests::scratch;

use crate::args::Programs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Gateway,
    TunnelServer,
    TunnelAgent,
}

// === impl Program ===

impl Program {
    const ALL: [Self; 3] = [Self::Gateway, Self::TunnelServer, Self::TunnelAgent];

    /// As given, or built here: with the workspace's release profile and the features a plain build has.
    pub fn path(self, given: &Programs) -> Result<PathBuf> {
        let given = match self {
            Self::Gateway => &given.gateway,
            Self::TunnelServer => &given.tunnel_server,
            Self::TunnelAgent => &given.tunnel_agent,
        };
        match given {
            Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display())),
            None => self.build(),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::TunnelServer => "tunnel-server",
            Self::TunnelAgent => "tunnel-agent",
        }
    }

    fn binary(self) -> &'static str {
        match self {
            Self::Gateway => "cluster-gateway",
            Self::TunnelServer | Self::TunnelAgent => self.package(),
        }
    }

    fn build(self) -> Result<PathBuf> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--release", "--manifest-path", manifest]);
        // All in one call, as images are built: alone each would have what they share built again, with features of its own.
        command.args(Self::ALL.iter().flat_map(|program| ["--package", program.package()]));
        ensure!(command.status().context("cannot run cargo")?.success(), "our programs do not build");
        Ok(scratch::target().join("release").join(self.binary()).canonicalize()?)
    }
}
