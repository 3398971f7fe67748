//! Our own programs, built from this checkout unless given.

use std::env;
use std::path::{self, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hub_tests::scratch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Gateway,
    TunnelServer,
    TunnelAgent,
    /// No request goes through them: they wait for hubs, and a profile would not speed up anything
    /// that a user waits for.
    Controllers,
}

/// Programs that are given by flag.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Given {
    /// The gateway to measure [default: built from this checkout]
    #[arg(long, global = true, value_name = "PATH")]
    pub gateway: Option<PathBuf>,
    /// The tunnel-server to measure [default: built from this checkout]
    #[arg(long, global = true, value_name = "PATH")]
    pub tunnel_server: Option<PathBuf>,
    /// The tunnel-agent to measure [default: built from this checkout]
    #[arg(long, global = true, value_name = "PATH")]
    pub tunnel_agent: Option<PathBuf>,
    /// The controllers to measure [default: built from this checkout]
    #[arg(long, global = true, value_name = "PATH")]
    pub controllers: Option<PathBuf>,
}

/// A build profile of the workspace, with the features of a plain build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Profile of a plain release build: minutes less to build.
    Release,
    /// For programs whose instructions are counted: between the two.
    Counted,
    /// Profile of the images.
    Shipped,
}

// === impl Profile ===

impl Profile {
    /// Its name in the manifest, and of the directory that cargo builds into.
    pub fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Counted => "counted",
            Self::Shipped => "dist",
        }
    }
}

// === impl Program ===

impl Program {
    /// The programs that requests go through, which are trained.
    pub const TRAINED: [Self; 3] = [Self::Gateway, Self::TunnelServer, Self::TunnelAgent];

    /// The given path, or the one in the directory into which `build` has built all of them.
    pub fn path(self, given: &Given, build: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
        let given = match self {
            Self::Gateway => &given.gateway,
            Self::TunnelServer => &given.tunnel_server,
            Self::TunnelAgent => &given.tunnel_agent,
            Self::Controllers => &given.controllers,
        };
        match given {
            Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display())),
            None => Ok(build()?.join(self.binary()).canonicalize()?),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::TunnelServer => "tunnel-server",
            Self::TunnelAgent => "tunnel-agent",
            Self::Controllers => "cluster-gateway-controllers",
        }
    }

    /// The name of its file.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Gateway => "cluster-gateway",
            Self::TunnelServer | Self::TunnelAgent | Self::Controllers => self.package(),
        }
    }

    /// Builds those of [`Program::TRAINED`] here, and says in which directory they are.
    pub fn build(profile: Profile) -> Result<PathBuf> {
        built(profile, Self::building(profile))
    }

    /// Builds this one alone.
    pub fn build_alone(self, profile: Profile) -> Result<PathBuf> {
        let mut cargo = building(profile);
        cargo.args(["--package", self.package()]);
        built(profile, cargo)
    }

    /// The command that builds those of [`Program::TRAINED`].
    pub fn building(profile: Profile) -> Command {
        let mut cargo = building(profile);
        // All in one call, as images are built: separate calls would build shared dependencies
        // again, each with features of its own.
        cargo.args(Self::TRAINED.iter().flat_map(|program| ["--package", program.package()]));
        cargo
    }
}

fn building(profile: Profile) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // cargo finds the workspace's configuration there, too.
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    cargo.args(["build", "--quiet", "--profile", profile.name()]);
    cargo
}

fn built(profile: Profile, mut cargo: Command) -> Result<PathBuf> {
    let directory = path::absolute(scratch::target())?;
    let status = cargo.arg("--target-dir").arg(&directory).status();
    ensure!(status.context("cannot run cargo")?.success(), "our programs do not build");
    Ok(directory.join(profile.name()))
}
