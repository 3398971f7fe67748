//! Decides which programs may run and in which environment, and finds them.
//!
//! A Secret names a program that runs next to the gateway's own credential for the hub, so the
//! operator must allow it. The Secret's environment must not circumvent that, and nearly every
//! program loads code from some variable (`LD_PRELOAD`, `BASH_ENV`, `PYTHONWARNINGS`,
//! `NODE_OPTIONS`, `AWS_CONFIG_FILE`, …). A list of bad variables is never complete, so this is a
//! list of good ones. The Secret sets the arguments: the operator that lists a program must judge
//! which of them are safe.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use api::secret::ExecConfig;

use crate::error::ExecError;

/// The programs that Secrets may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commands {
    /// Any program, in any environment.
    Any,
    Listed {
        /// Names (found in `PATH`) and absolute paths. Empty allows none.
        commands: Vec<String>,
        /// Names of the variables that may be set for them.
        variables: Vec<String>,
    },
}

const SEARCH_PATH: &str = "PATH";

// === impl Commands ===

impl Commands {
    /// Parses a list of commands, in which `*` anywhere means any, and a list of the variables for
    /// them. Ignores blanks.
    pub fn parse(commands: &[String], variables: &[String]) -> Self {
        let commands = trimmed(commands);
        if commands.iter().any(|command| command == "*") {
            Self::Any
        } else {
            Self::Listed { commands, variables: trimmed(variables) }
        }
    }

    /// Whether `config` may run at all, wherever its command is.
    pub fn check(&self, config: &ExecConfig) -> Result<(), ExecError> {
        let Self::Listed { commands, variables } = self else { return Ok(()) };
        let is_listed = |command: &str| commands.iter().any(|one| one == command);
        // A name also stands for the file found under it, which the operator may have listed.
        let is_allowed =
            is_listed(&config.command) || locate(config).is_ok_and(|path| path.to_str().is_some_and(is_listed));
        if !is_allowed {
            return Err(ExecError::NotAllowed { command: config.command.clone() });
        }
        match config.env.iter().find(|(name, _)| !variables.contains(name)) {
            Some((name, _)) => Err(ExecError::VariableNotAllowed { name: name.clone() }),
            None => Ok(()),
        }
    }
}

fn trimmed(list: &[String]) -> Vec<String> {
    list.iter().map(|one| one.trim()).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// The file of the command: an absolute path as written, otherwise the first executable of this
/// name in the gateway's `PATH`.
///
/// client-go resolves relative paths against the kubeconfig's directory. A Secret has none.
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

/// Skips relative and empty entries of `PATH`, like Go's `exec.LookPath`: they would mean the
/// working directory.
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
