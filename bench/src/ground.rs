//! What scenarios stand on: a directory, a real hub, a fast upstream, the ways to it. Each is started by the first that needs it
//! and ends with the run.

mod hub;
mod programs;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, bail};
use hub_tests::scratch::Scratch;

pub use self::hub::{CALLER, HubSide, VERBS};
pub use self::programs::{Profile, Program};
use crate::args::Programs;
use crate::figure::Target;
use crate::tool::Absent;
use crate::upstream::Upstream;
use crate::way::{self, Way};

pub struct Ground {
    /// Not measured, only tried: small amounts will do.
    pub smoke: bool,
    pub given: Programs,
    /// Of our programs.
    pub profile: Profile,
    hub: Option<Rc<HubSide>>,
    upstream: Option<Rc<Upstream>>,
    ways: Vec<(Target, Rc<Way>)>,
    /// Why they did not start: waiting for each of them again in every scenario would take minutes.
    broken: Vec<(Target, String)>,
    /// Where files go. Last, so that it goes after the programs that use it.
    scratch: Scratch,
}

// === impl Ground ===

impl Ground {
    pub fn new(given: Programs, smoke: bool) -> Result<Self> {
        Ok(Self {
            smoke,
            given,
            profile: if smoke { Profile::Release } else { Profile::Shipped },
            hub: None,
            upstream: None,
            ways: Vec::new(),
            broken: Vec::new(),
            scratch: Scratch::create()?,
        })
    }

    /// For keys, configurations and logs.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// A file's path in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// A program of ours, built from this checkout unless given.
    pub fn program(&self, program: Program) -> Result<PathBuf> {
        program.path(&self.given, self.profile)
    }

    /// A real hub. The first call builds its programs if need be and takes seconds.
    pub fn hub(&mut self) -> Result<Rc<HubSide>> {
        if let Some(hub) = &self.hub {
            return Ok(Rc::clone(hub));
        }
        let hub = Rc::new(HubSide::start(self.directory())?);
        Ok(Rc::clone(self.hub.insert(hub)))
    }

    /// What stands for a member where the proxy is to be measured.
    pub fn upstream(&mut self) -> Result<Rc<Upstream>> {
        if let Some(upstream) = &self.upstream {
            return Ok(Rc::clone(upstream));
        }
        let upstream = Rc::new(Upstream::start(self.directory(), self.smoke)?);
        Ok(Rc::clone(self.upstream.insert(upstream)))
    }

    /// The way to the upstream through `target`, the same one for every scenario.
    pub fn way(&mut self, target: Target) -> Result<Rc<Way>> {
        if let Some((_, way)) = self.ways.iter().find(|(known, _)| *known == target) {
            return Ok(Rc::clone(way));
        }
        if let Some((_, reason)) = self.broken.iter().find(|(known, _)| *known == target) {
            bail!("{reason}");
        }
        match way::start(self, target) {
            Ok(way) => {
                let way = Rc::new(way);
                self.ways.push((target, Rc::clone(&way)));
                Ok(way)
            }
            Err(error) => {
                if !Absent::is_cause_of(&error) {
                    self.broken.push((target, format!("{error:#}")));
                }
                Err(error)
            }
        }
    }
}
