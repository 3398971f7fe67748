//! Which programs may be run, and where they are.
//!
//! A Secret names a program that runs beside the gateway's own credential for the hub: the operator says which, and the
//! Secret's environment must not be a way around that.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use api::secret::ExecConfig;

use crate::error::ExecError;

/// The commands that Secrets may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commands {
    Any,
    /// Names (found in `PATH`) and absolute paths; empty: none.
    Listed(Vec<String>),
}

/// Variables by which a program's environment says which code it loads, or which programs it starts.
const LOADER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];
const SEARCH_PATH: &str = "PATH";

// === impl Commands ===

impl Commands {
    /// Reads a list: `*` anywhere means any, blanks mean nothing.
    pub fn parse(list: &[String]) -> Self {
        let listed: Vec<_> = list.iter().map(|command| command.trim()).filter(|command| !command.is_empty()).collect();
        if listed.contains(&"*") { Self::Any } else { Self::Listed(listed.into_iter().map(str::to_owned).collect()) }
    }

    /// Whether `config` may be run at all, wherever its command is.
    pub fn check(&self, config: &ExecConfig) -> Result<(), ExecError> {
        let Self::Listed(listed) = self else { return Ok(()) };
        let is_listed = |command: &str| listed.iter().any(|one| one == command);
        // A name stands for the file it is found as: the operator may have listed that.
        let is_allowed =
            is_listed(&config.command) || locate(config).is_ok_and(|path| path.to_str().is_some_and(is_listed));
        if !is_allowed {
            return Err(ExecError::NotAllowed { command: config.command.clone() });
        }
        let decides = |name: &str| name == SEARCH_PATH || LOADER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        match config.env.iter().find(|(name, _)| decides(name)) {
            Some((name, _)) => Err(ExecError::VariableNotAllowed { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// The file of the command: as written if absolute, else the first executable of that name in the gateway's `PATH`.
///
/// client-go takes relative paths as relative to the kubeconfig; a Secret is nowhere.
pub(crate) fn locate(config: &ExecConfig) -> Result<PathBuf, ExecError> {
    let command = &config.command;
    let path = Path::new(command);
    let found = if path.is_absolute() {
        Some(path.to_owned()).filter(|path| is_executable(path))
    } else if command.contains('/') {
        return Err(ExecError::RelativePath { command: command.clone() });
    } else {
        env::var_os(SEARCH_PATH).and_then(|search| find(command, &search))
    };
    found.ok_or_else(|| ExecError::NotFound {
        command: command.clone(),
        hint: config.install_hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default(),
    })
}

/// Relative and empty entries of `PATH` are passed over, as by Go's `exec.LookPath`: they would mean the working directory.
fn find(name: &str, search: &OsStr) -> Option<PathBuf> {
    env::split_paths(search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
