//! The data key `exec`: JSON of client-go's `ExecConfig` (`k8s.io/client-go/tools/clientcmd/api`),
//! a program that issues the credential.
//!
//! The parsed result is safe to run: within the limits of the system, and without characters that
//! would end an argument early.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::SecretError;

/// Names, separated by commas, of the variables that any Secret may set for a program by default.
/// They select identities and places that the operator set up, but neither programs nor files.
pub const HARMLESS_VARIABLES: &str =
    "AWS_PROFILE,AWS_REGION,AWS_DEFAULT_REGION,AWS_STS_REGIONAL_ENDPOINTS,CLOUDSDK_CORE_PROJECT";

/// A program that issues a credential. Its environment is not printable.
#[derive(Debug, Clone)]
pub struct ExecConfig {
    pub api_version: ExecApiVersion,
    pub command: String,
    pub args: Vec<String>,
    /// Added to the gateway's own environment, in this order.
    pub env: Vec<(String, SecretString)>,
    /// Whether the program receives the cluster in `KUBERNETES_EXEC_INFO`.
    pub provide_cluster_info: bool,
    /// Shown if the program is not installed.
    pub install_hint: Option<String>,
}

/// The version of the exec protocol. The program's output must repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecApiVersion {
    V1,
    V1Beta1,
}

/// Most bytes of the whole key. Linux accepts 128 KiB for one argument or variable.
const MOST_BYTES: usize = 64 << 10;
/// `PATH_MAX` of Linux.
const MOST_COMMAND: usize = 4096;
const MOST_ARGS: usize = 256;
const MOST_VARIABLES: usize = 256;
/// Most bytes of one variable's value.
const MOST_VALUE: usize = 32 << 10;
/// Most characters kept of the hint.
const MOST_HINT: usize = 1024;

/// Every field may be null, as Go's decoder allows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    api_version: Option<String>,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    provide_cluster_info: Option<bool>,
    interactive_mode: Option<String>,
    install_hint: Option<String>,
}

#[derive(Deserialize)]
struct Variable {
    name: Option<String>,
    value: Option<String>,
}

// === impl ExecConfig ===

impl ExecConfig {
    /// Parses the key's bytes. Errors name the field and never its value.
    pub fn parse(json: &[u8]) -> Result<Self, SecretError> {
        if json.len() > MOST_BYTES {
            return Err(SecretError::Exec("it is larger than 64 KiB"));
        }
        let written: Written = serde_json::from_slice(json).map_err(|_| SecretError::ExecNotJson)?;
        let api_version = ExecApiVersion::parse(written.api_version.as_deref().unwrap_or_default())?;
        match written.interactive_mode.as_deref() {
            None | Some("" | "Never" | "IfAvailable") => {}
            Some("Always") => {
                return Err(SecretError::Exec(
                    "interactiveMode Always needs a terminal, and there is none: set it to Never",
                ));
            }
            Some(_) => return Err(SecretError::Exec("interactiveMode must be Never, IfAvailable or Always")),
        }
        Ok(Self {
            api_version,
            command: command(written.command.unwrap_or_default())?,
            args: args(written.args.unwrap_or_default())?,
            env: env(written.env.unwrap_or_default())?,
            provide_cluster_info: written.provide_cluster_info.unwrap_or_default(),
            install_hint: written.install_hint.map(|hint| one_line(&hint)).filter(|hint| !hint.is_empty()),
        })
    }

    /// The JSON that [`Self::parse`] reads as this. client-go's `v1` requires `interactiveMode`.
    pub(super) fn written(&self) -> Value {
        let env = self.env.iter().map(|(name, value)| json!({"name": name, "value": value.expose_secret()}));
        json!({
            "apiVersion": self.api_version.as_str(),
            "command": self.command,
            "args": self.args,
            "env": env.collect::<Vec<_>>(),
            "provideClusterInfo": self.provide_cluster_info,
            "interactiveMode": "Never",
            "installHint": self.install_hint,
        })
    }
}

fn command(command: String) -> Result<String, SecretError> {
    if command.is_empty() {
        return Err(SecretError::ExecNoCommand);
    }
    if command.len() > MOST_COMMAND || command.chars().any(char::is_control) {
        return Err(SecretError::Exec(
            "\"command\" is not a file name: it is longer than 4,096 bytes or has control characters",
        ));
    }
    Ok(command)
}

fn args(args: Vec<String>) -> Result<Vec<String>, SecretError> {
    if args.len() > MOST_ARGS {
        return Err(SecretError::Exec("\"args\" has more than 256 entries"));
    }
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err(SecretError::Exec("one of the \"args\" has a zero byte"));
    }
    Ok(args)
}

fn env(env: Vec<Variable>) -> Result<Vec<(String, SecretString)>, SecretError> {
    if env.len() > MOST_VARIABLES {
        return Err(SecretError::Exec("\"env\" has more than 256 variables"));
    }
    let variable = |Variable { name, value }| {
        let (name, value): (String, String) = (Option::unwrap_or_default(name), Option::unwrap_or_default(value));
        if name.is_empty() || name.contains('=') || name.chars().any(char::is_control) {
            return Err(SecretError::Exec("a variable of \"env\" has no name, or one with '=' or control characters"));
        }
        if value.contains('\0') || value.len() > MOST_VALUE {
            return Err(SecretError::Exec("a value of \"env\" has a zero byte or is longer than 32 KiB"));
        }
        Ok((name, value.into()))
    };
    env.into_iter().map(variable).collect()
}

/// Makes the hint one line, because messages contain it.
fn one_line(hint: &str) -> String {
    let clean = hint.trim().chars().take(MOST_HINT).map(|c| if c.is_control() { ' ' } else { c });
    clean.collect()
}

// === impl ExecApiVersion ===

impl ExecApiVersion {
    fn parse(text: &str) -> Result<Self, SecretError> {
        [Self::V1, Self::V1Beta1].into_iter().find(|one| one.as_str() == text).ok_or(SecretError::ExecApiVersion)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1Beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }
}

impl fmt::Display for ExecApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
