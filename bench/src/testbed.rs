//! The environment of scenarios: a directory, a real hub, a fast upstream, the ways to it. Each is
//! started by the first that needs it and ends with the run.

mod hub;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use harness::Floor;
use harness::program::{Profile, Program};
use hub_tests::scratch::Scratch;

pub use self::hub::{CALLER, HubSide, VERBS};
use crate::given::Programs;
use crate::route::Routes;
use crate::size::Size;
use crate::upstream::Upstream;

pub struct Testbed {
    /// Not measured, only tried: small amounts will do.
    pub smoke: bool,
    pub given: Programs,
    /// Amounts of the scenarios delivery and joining, unless they are only tried.
    pub size: Size,
    hub: Option<Rc<HubSide>>,
    upstream: Option<Rc<Upstream>>,
    /// Routes to the upstream.
    pub routes: Routes,
    /// Directory of the files. Last, so that it is dropped after the programs that use it.
    scratch: Scratch,
}

// === impl Testbed ===

impl Testbed {
    pub fn new(given: Programs, smoke: bool, size: Size) -> Result<Self> {
        let (hub, upstream, routes) = (None, None, Routes::default());
        Ok(Self { smoke, given, size, hub, upstream, routes, scratch: Scratch::create()? })
    }

    /// Directory for keys, configurations and logs.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// A file's path in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// A program of ours, built from this checkout unless given.
    pub fn program(&self, program: Program) -> Result<PathBuf> {
        // Built as images have them, unless they are only tried: minutes less to build.
        let build = || match (program, self.smoke) {
            (Program::Controllers, true) => program.build_alone(Profile::Release),
            (Program::Controllers, false) => program.build_alone(Profile::Shipped),
            (_, true) => Program::build(Profile::Release),
            (_, false) => dist::build(),
        };
        program.path(&self.given.ours, build)
    }

    /// Runs `act` with the environment of a harness.
    pub fn floor<T>(&self, act: impl FnOnce(&Floor<'_>) -> T) -> T {
        act(&Floor { directory: self.directory(), program: &|program| self.program(program), gateway: &[] })
    }

    /// A real hub. The first call builds its programs if need be and takes seconds.
    pub fn hub(&mut self) -> Result<Rc<HubSide>> {
        if let Some(hub) = &self.hub {
            return Ok(Rc::clone(hub));
        }
        let hub = Rc::new(HubSide::start(self.directory())?);
        Ok(Rc::clone(self.hub.insert(hub)))
    }

    /// The stand-in for a member where the proxy is to be measured.
    pub fn upstream(&mut self) -> Result<Rc<Upstream>> {
        if let Some(upstream) = &self.upstream {
            return Ok(Rc::clone(upstream));
        }
        let upstream = Rc::new(Upstream::start(self.directory(), self.smoke)?);
        Ok(Rc::clone(self.upstream.insert(upstream)))
    }
}
