//! Building one set of tools with Go, into a cache that several test processes may share.
//!
//! A binary appears under its name only when it is complete (built beside it, then renamed), and
//! only one process builds at a time (a lock on a file of the set's directory), so nobody runs half
//! a binary or builds twice.

use std::fmt::Write as _;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use aws_lc_rs::digest;

use crate::scratch;

/// Where Kubernetes programs keep the version they report; without it kubectl prints oddities about
/// the server.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";
/// Prometheus without the clients of every cloud: half the time to build. Other programs know no
/// such tag.
const TAGS: &str = "remove_all_sd";
/// Part of the cache key: raise it when the command line below changes.
const RECIPE: &str = "1";

/// A directory under `tools/`, and the cache of what is built from it.
#[derive(Debug)]
pub(super) struct Set {
    sources: PathBuf,
    cache: PathBuf,
    linker_flags: String,
}

// === impl Set ===

impl Set {
    pub(super) fn read(name: &str) -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(name);
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(RECIPE.as_bytes());
        for file in ["go.mod", "go.sum", "main.go"] {
            match std::fs::read(sources.join(file)) {
                Ok(text) => hash.update(&text),
                Err(error) if error.kind() == ErrorKind::NotFound && file == "main.go" => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {file} of {}", sources.display()));
                }
            }
        }
        let key = hash.finish().as_ref().iter().take(6).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let module = std::fs::read_to_string(sources.join("go.mod"))?;
        let cache = scratch::target().join("hub-tools").join(format!("{name}-{key}"));
        Ok(Self { sources, cache, linker_flags: linker_flags(&module)? })
    }

    /// The path of `binary`, which is built from `package` if it is not there yet.
    pub(super) fn provide(&self, binary: &str, package: &str) -> Result<PathBuf> {
        let directory = self.cache.join("bin");
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let path = directory.canonicalize()?.join(binary);
        if path.is_file() {
            return Ok(path);
        }
        let lock = File::create(self.cache.join("build.lock"))?;
        lock.lock().context("cannot lock the cache of tools")?;
        if !path.is_file() {
            self.build(package, &path).with_context(|| format!("cannot build {binary}"))?;
        }
        Ok(path)
    }

    /// A file of a module that it requires.
    pub(super) fn file(&self, module: &str, path: &str) -> Result<String> {
        let mut list = Command::new("go");
        list.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(&self.sources);
        // Downloads it if it is not there.
        let fetch = Command::new("go").args(["mod", "download", module]).current_dir(&self.sources).output()?;
        let listed = list.output()?;
        if !(fetch.status.success() && listed.status.success()) {
            bail!("go cannot find {module}: {}", String::from_utf8_lossy(&[fetch.stderr, listed.stderr].concat()));
        }
        let path = Path::new(String::from_utf8(listed.stdout)?.trim()).join(path);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn build(&self, package: &str, path: &Path) -> Result<()> {
        let unfinished = path.with_extension("unfinished");
        let output = Command::new("go")
            .args(["build", "-trimpath", "-tags", TAGS, "-ldflags", &self.linker_flags, "-o"])
            .arg(&unfinished)
            .arg(package)
            .current_dir(&self.sources)
            .env("CGO_ENABLED", "0")
            .output()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => anyhow!(
                    "Go is not in PATH. The control planes of these tests are built from source: install Go 1.26 or \
                     later (https://go.dev/dl)"
                ),
                _ => error.into(),
            })?;
        if !output.status.success() {
            bail!("go build {package}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        std::fs::rename(&unfinished, path)?;
        Ok(())
    }
}

/// Strips symbols; for Kubernetes also sets the version, which is the one that `go.mod` requires.
fn linker_flags(module: &str) -> Result<String> {
    let required =
        module.lines().find_map(|line| line.trim_start_matches("require ").trim().strip_prefix("k8s.io/kubernetes "));
    let Some(version) = required.map(str::trim) else { return Ok("-s -w".to_owned()) };
    let (major, rest) = version.trim_start_matches('v').split_once('.').context("a version without a dot")?;
    let (minor, _) = rest.split_once('.').context("a version with one dot")?;
    Ok(format!(
        "-s -w -X {VERSION_PACKAGE}.gitVersion={version} -X {VERSION_PACKAGE}.gitMajor={major} -X \
         {VERSION_PACKAGE}.gitMinor={minor}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_programs_are_told_the_required_version() {
        let flags = linker_flags("module m\n\nrequire k8s.io/kubernetes v1.35.4\n\nreplace (\n").unwrap();
        assert!(flags.ends_with("gitVersion=v1.35.4 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"));
        assert_eq!(linker_flags("module m\n\nrequire go.etcd.io/etcd v3.6.7\n").unwrap(), "-s -w");
    }

    #[test]
    fn sets_that_differ_have_caches_that_differ() {
        assert_ne!(Set::read("etcd").unwrap().cache, Set::read("kwok").unwrap().cache);
    }
}
