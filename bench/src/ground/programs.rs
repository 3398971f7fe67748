//! Our own programs, built from this checkout unless given.

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

/// How they are built: one of the workspace's profiles, with the features a plain build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As a plain release build has them: minutes less to build.
    Release,
    /// As images have them.
    Shipped,
}

// === impl Profile ===

impl Profile {
    /// In the manifest, and of the directory that cargo puts what it built into.
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Shipped => "dist",
        }
    }
}

// === impl Program ===

impl Program {
    const ALL: [Self; 3] = [Self::Gateway, Self::TunnelServer, Self::TunnelAgent];

    /// As given, or built here.
    pub fn path(self, given: &Programs, profile: Profile) -> Result<PathBuf> {
        let given = match self {
            Self::Gateway => &given.gateway,
            Self::TunnelServer => &given.tunnel_server,
            Self::TunnelAgent => &given.tunnel_agent,
        };
        match given {
            Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display())),
            None => self.build(profile),
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

    fn build(self, profile: Profile) -> Result<PathBuf> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--profile", profile.name(), "--manifest-path", manifest]);
        // All in one call, as images are built: alone each would have what they share built again, with features of its own.
        command.args(Self::ALL.iter().flat_map(|program| ["--package", program.package()]));
        ensure!(command.status().context("cannot run cargo")?.success(), "our programs do not build");
        Ok(scratch::target().join(profile.name()).join(self.binary()).canonicalize()?)
    }
}
