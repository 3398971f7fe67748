//! The compiler and what comes with it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use harness::program::{Profile, Program};

/// rustup's name of the tools for profiles.
const COMPONENT: &str = "llvm-tools";

pub struct Toolchain {
    /// Target triple of this machine.
    host: String,
    /// Tool of the compiler's own LLVM: another version may not know the profiles' format.
    profdata: PathBuf,
}

// === impl Toolchain ===

impl Toolchain {
    /// The toolchain that builds this workspace; its tools are installed if they are missing.
    pub fn here() -> Result<Self> {
        let said = output(Command::new("rustc").arg("-vV"))?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not name its host")?;
        let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let tools = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin");
        let profdata = tools.join("llvm-profdata");
        if !profdata.exists() {
            output(Command::new("rustup").args(["component", "add", COMPONENT])).with_context(|| {
                format!("llvm-profdata is not here, and rustup component add {COMPONENT} has failed")
            })?;
        }
        ensure!(profdata.exists(), "{} is not there", profdata.display());
        Ok(Self { host: host.to_owned(), profdata })
    }

    /// Builds our programs with one more compiler flag; returns their directory.
    pub fn build(&self, directory: &Path, flag: &str) -> Result<PathBuf> {
        let mut flags = env::var_os("RUSTFLAGS").unwrap_or_default();
        flags.push(" ");
        flags.push(flag);
        let mut cargo = Program::building(Profile::Shipped);
        // With the target named, the flag is for our programs alone: build scripts and macros are
        // neither recorded nor trained.
        cargo.args(["--target", &self.host]).arg("--target-dir").arg(directory).env("RUSTFLAGS", flags);
        ensure!(cargo.status().context("cannot run cargo")?.success(), "our programs do not build with {flag}");
        Ok(directory.join(&self.host).join(Profile::Shipped.name()))
    }

    /// Merges all records in `raw` into one profile.
    pub fn merge(&self, raw: &Path, merged: &Path) -> Result<()> {
        let words: [OsString; 4] = ["merge".into(), "--output".into(), merged.into(), raw.into()];
        output(Command::new(&self.profdata).args(words)).map(drop)
    }
}

/// The output of `command`, run in the workspace: there rustup finds the required toolchain.
fn output(command: &mut Command) -> Result<String> {
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let done = done.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(
        done.status.success(),
        "{}: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&done.stderr).trim_end()
    );
    Ok(String::from_utf8(done.stdout)?)
}
