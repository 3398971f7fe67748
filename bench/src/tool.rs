//! Programs of distribution packages: found, or reported with the package to install. A target that
//! lacks one is skipped, which is no fault of the run; any other failure of a target is.

use std::env;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The package to install for it, or the flag that names it.
#[derive(Clone, Debug)]
pub struct Absent {
    pub program: String,
    pub hint: String,
}

// === impl Absent ===

impl Absent {
    /// `hint`: how to get it, by `package haproxy` or `--go-gateway`.
    pub fn new(program: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { program: program.into(), hint: hint.into() }
    }

    /// Whether `error` comes of an absent program.
    pub fn is_cause_of(error: &anyhow::Error) -> bool {
        error.chain().any(<dyn std::error::Error>::is::<Self>)
    }
}

impl Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not here ({})", self.program, self.hint)
    }
}

impl std::error::Error for Absent {}

/// The program `name` in PATH or where distributions put servers.
/// # Errors
/// [`Absent`], naming the distribution's `package`.
pub fn find(name: &str, package: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let servers = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let candidates = env::split_paths(&path).chain(servers).map(|directory| directory.join(name));
    let found = candidates.into_iter().find(|candidate| is_program(candidate));
    found.ok_or_else(|| Absent::new(name, format!("package {package}")).into())
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_shell_is_found() {
        assert!(find("sh", "dash").unwrap().is_absolute());
    }

    #[test]
    fn what_is_absent_is_told_with_its_package_and_known_below_other_reasons() {
        let error = find("no-such-proxy", "no-such-package").context("cannot start it").unwrap_err();
        assert_eq!(format!("{error:#}"), "cannot start it: no-such-proxy is not here (package no-such-package)");
        assert!(Absent::is_cause_of(&error));
        assert!(!Absent::is_cause_of(&anyhow::anyhow!("it crashed")));
    }
}
