//! The `exec` data key: JSON of client-go's `ExecConfig` (`k8s.io/client-go/tools/clientcmd/api`), a program that issues the
//! credential.

use std::fmt;

use secrecy::SecretString;
use serde::Deserialize;

use super::SecretError;

/// A program to run for a credential. The environment it is given cannot be printed.
#[derive(Debug, Clone)]
pub struct ExecConfig {
    pub api_version: ExecApiVersion,
    pub command: String,
    pub args: Vec<String>,
    /// Added to the gateway's own environment, in this order.
    pub env: Vec<(String, SecretString)>,
    /// Whether the program is told about the cluster in `KUBERNETES_EXEC_INFO`.
    pub provide_cluster_info: bool,
    /// Shown when the program is not there.
    pub install_hint: Option<String>,
}

/// The version of the exec protocol, which the program's answer must repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecApiVersion {
    V1,
    V1Beta1,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<Variable>>,
    #[serde(default)]
    provide_cluster_info: bool,
    #[serde(default)]
    install_hint: Option<String>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

// === impl ExecConfig ===

impl ExecConfig {
    pub fn parse(json: &[u8]) -> Result<Self, SecretError> {
        let written: Written = serde_json::from_slice(json).map_err(|_| SecretError::ExecNotJson)?;
        let api_version = match written.api_version.as_str() {
            "client.authentication.k8s.io/v1" => ExecApiVersion::V1,
            "client.authentication.k8s.io/v1beta1" => ExecApiVersion::V1Beta1,
            _ => return Err(SecretError::ExecApiVersion),
        };
        if written.command.is_empty() {
            return Err(SecretError::ExecNoCommand);
        }
        let env = written.env.unwrap_or_default();
        Ok(Self {
            api_version,
            command: written.command,
            args: written.args.unwrap_or_default(),
            env: env.into_iter().map(|Variable { name, value }| (name, value.into())).collect(),
            provide_cluster_info: written.provide_cluster_info,
            install_hint: written.install_hint.filter(|hint| !hint.is_empty()),
        })
    }
}

// === impl ExecApiVersion ===

impl ExecApiVersion {
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
