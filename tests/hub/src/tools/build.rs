//! Builds one set of tools with Go, into a cache that several test processes may share.
//!
//! A binary appears under its name only once it is complete (built next to it, then renamed), and
//! only one process builds at a time (a lock on a file of the set's directory), so no process runs
//! an incomplete binary or builds twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, anyhow, bail};
use aws_lc_rs::digest;
use parking_lot::Mutex;

use crate::scratch;

/// The package with the version that Kubernetes programs report; without it kubectl prints odd
/// messages about the server.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";
/// Builds Prometheus without the clients of every cloud, in half the time. Other programs ignore
/// the tag.
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

    /// The directory of a module that this set requires, downloaded if it is missing. Go is asked
    /// once for each module: it reads the whole graph of modules.
    pub(super) fn module(&self, module: &str) -> Result<PathBuf> {
        static FOUND: Mutex<BTreeMap<(PathBuf, String), PathBuf>> = Mutex::new(BTreeMap::new());
        let key = (self.sources.clone(), module.to_owned());
        let mut found = FOUND.lock();
        if let Some(directory) = found.get(&key) {
            return Ok(directory.clone());
        }
        let directory = self.find(module)?;
        found.insert(key, directory.clone());
        Ok(directory)
    }

    fn find(&self, module: &str) -> Result<PathBuf> {
        let go = |arguments: &[&str]| Command::new("go").args(arguments).current_dir(&self.sources).output();
        let list = || go(&["list", "-m", "-f", "{{.Dir}}", module]).context("cannot run go list");
        let place = |listed: &Output| String::from_utf8_lossy(&listed.stdout).trim().to_owned();
        let listed = list()?;
        if listed.status.success() && !place(&listed).is_empty() {
            return Ok(PathBuf::from(place(&listed)));
        }
        let fetched = go(&["mod", "download", module]).context("cannot run go mod download")?;
        let listed = list()?;
        if !listed.status.success() || place(&listed).is_empty() {
            bail!("go cannot find {module}: {}", String::from_utf8_lossy(&[fetched.stderr, listed.stderr].concat()));
        }
        Ok(PathBuf::from(place(&listed)))
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

/// Strips symbols; for Kubernetes it also sets the version, to the one that `go.mod` requires.
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
