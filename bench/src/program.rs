//! Our own programs, built from this checkout unless given.

use std::env;
use std::path::{self, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hub_tests::scratch;

use crate::given::Programs;

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

/// Builds all programs and says in which directory they are.
pub type Build = fn() -> Result<PathBuf>;

// === impl Profile ===

impl Profile {
    /// In the manifest, and of the directory that cargo puts what it built into.
    pub fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Shipped => "dist",
        }
    }
}

// === impl Program ===

impl Program {
    pub const ALL: [Self; 3] = [Self::Gateway, Self::TunnelServer, Self::TunnelAgent];

    /// As given, or built here: by `shipped`, which says into which directory, if they are to be as images have them.
    pub fn path(self, given: &Programs, profile: Profile, shipped: Build) -> Result<PathBuf> {
        let given = match self {
            Self::Gateway => &given.gateway,
            Self::TunnelServer => &given.tunnel_server,
            Self::TunnelAgent => &given.tunnel_agent,
        };
        match given {
            Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display())),
            None => self.build(profile, shipped),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::TunnelServer => "tunnel-server",
            Self::TunnelAgent => "tunnel-agent",
        }
    }

    /// What its file is called.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Gateway => "cluster-gateway",
            Self::TunnelServer | Self::TunnelAgent => self.package(),
        }
    }

    fn build(self, profile: Profile, shipped: Build) -> Result<PathBuf> {
        let directory = match profile {
            Profile::Shipped => shipped()?,
            Profile::Release => {
                let directory = path::absolute(scratch::target())?;
                let built = Self::building(profile).arg("--target-dir").arg(&directory).status();
                ensure!(built.context("cannot run cargo")?.success(), "our programs do not build");
                directory.join(profile.name())
            }
        };
        Ok(directory.join(self.binary()).canonicalize()?)
    }

    /// The command that builds all of them.
    pub fn building(profile: Profile) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // There cargo finds the workspace's configuration, too.
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        cargo.args(["build", "--quiet", "--profile", profile.name()]);
        // All in one call, as images are built: alone each would have what they share built again, with features of its own.
        cargo.args(Self::ALL.iter().flat_map(|program| ["--package", program.package()]));
        cargo
    }
}
