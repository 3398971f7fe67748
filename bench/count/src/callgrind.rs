//! A program under callgrind, whose counters are read while it runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use hub_tests::process::Process;
use hub_tests::wait;

use harness::Player;
use harness::usage::Tree;

/// The name of valgrind's process.
const NAME: &str = "callgrind";
/// Limit for valgrind to replace the shell that starts it.
const START: Duration = Duration::from_secs(20);
/// Limit for a program to notice the request for its counters, in seconds.
const PATIENCE: &str = "60";

/// A running program; ended on drop.
pub struct Counted {
    process: Process,
    name: &'static str,
    id: u32,
    output: PathBuf,
    dumps: usize,
}

/// Counters since they were set to zero.
pub struct Dump {
    pub program: &'static str,
    pub file: PathBuf,
    pub instructions: u64,
}

/// An error that says what to install, where valgrind is absent.
pub fn require() -> Result<()> {
    for program in ["valgrind", "vgdb"] {
        let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        ensure!(there.is_ok(), "{program} is not installed (package valgrind)");
    }
    Ok(())
}

/// The counters in `file`, of `program`.
pub fn read(file: PathBuf, program: &'static str) -> Result<Dump> {
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    // A file at a program's end has it there, one in between at its head.
    let total = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    let instructions = total.context("no sum in callgrind's output")?.trim().parse()?;
    Ok(Dump { program, file, instructions })
}

// === impl Counted ===

impl Player for Counted {
    fn start(name: &'static str, program: &Path, args: Vec<String>, directory: &Path) -> Result<Self> {
        let output = directory.join(format!("{name}.callgrind"));
        let mut all = vec!["--tool=callgrind".into(), format!("--callgrind-out-file={}", output.display()).into()];
        all.push(program.as_os_str().to_owned());
        all.extend(args.into_iter().map(OsString::from));
        let mut process = Process::start(name, Path::new("valgrind"), all, directory)?;
        let id = wait::until("valgrind", START, || {
            process.check()?;
            let here =
                |id: &u32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.starts_with(NAME));
            Tree::new([process.id()]).processes().into_iter().find(here).context("it has not started")
        })?;
        Ok(Self { process, name, id, output, dumps: 0 })
    }

    fn check(&mut self) -> Result<()> {
        self.process.check()
    }
}

impl Counted {
    /// Sets the counters to zero.
    pub fn zero(&self) -> Result<()> {
        self.order("zero")
    }

    /// Reads the counters and sets them to zero.
    pub fn dump(&mut self) -> Result<Dump> {
        self.order("dump")?;
        self.dumps += 1;
        let file = PathBuf::from(format!("{}.{}", self.output.display(), self.dumps));
        read(file, self.name)
    }

    fn order(&self, command: &str) -> Result<()> {
        let mut vgdb = Command::new("timeout");
        vgdb.args([PATIENCE, "vgdb", &format!("--pid={}", self.id), command]);
        let answer = vgdb.output().context("cannot run vgdb")?;
        if !answer.status.success() {
            bail!("vgdb {command}: {}\n{}", String::from_utf8_lossy(&answer.stderr), self.process.log_tail());
        }
        Ok(())
    }
}
