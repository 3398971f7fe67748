//! The operator's file of known providers and the program of each
//! (`--clusterprofile-import-providers-file`). The format is upstream's (`pkg/access/config.go`),
//! JSON.

use api::secret::{ExecConfig, SecretError};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Limit of the file, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// A field of `execConfig` that upstream overrides: no program has a terminal.
const INTERACTIVE_MODE: &str = "interactiveMode";

/// The known providers, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Providers(Vec<Provider>);

/// A way to get a credential.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) exec: ExecConfig,
    pub(super) args: ArgsPolicy,
    pub(super) env: EnvPolicy,
}

/// What profiles may add to a program's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgsPolicy {
    Append,
    Ignore,
}

/// What profiles may add to a program's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvPolicy {
    AppendIfNotExists,
    Replace,
    Ignore,
}

/// The fault in the file. The texts follow the flag, and repeat none of its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProviders {
    #[error("it is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    #[error("it is not the JSON of providers, near line {line}, column {column}")]
    Json { line: usize, column: usize },
    #[error("it has no providers")]
    Empty,
    #[error("providers[{0}]: name is empty")]
    NoName(usize),
    #[error("providers[{0}]: an earlier provider has the same name")]
    SameName(usize),
    #[error("providers[{0}]: execConfig is missing")]
    NoExecConfig(usize),
    #[error("providers[{0}]: execConfig: {1}")]
    ExecConfig(usize, #[source] SecretError),
    #[error("providers[{0}]: {1} must be one of {2}")]
    Policy(usize, &'static str, &'static str),
}

#[derive(Deserialize)]
struct File {
    providers: Option<Vec<Written>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    name: Option<String>,
    exec_config: Option<Map<String, Value>>,
    #[serde(rename = "profileSourcedCLIArgsPolicy")]
    args: Option<String>,
    #[serde(rename = "profileSourcedEnvVarsPolicy")]
    env: Option<String>,
}

// === impl Providers ===

impl Providers {
    /// Reads the file: `{"providers": [{"name", "execConfig", "profileSourcedCLIArgsPolicy",
    /// "profileSourcedEnvVarsPolicy"}]}`. Policies that are absent mean `Ignore`.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidProviders> {
        if json.len() > MOST_BYTES {
            return Err(InvalidProviders::TooLarge);
        }
        let place = |error: serde_json::Error| InvalidProviders::Json { line: error.line(), column: error.column() };
        let file: File = serde_json::from_slice(json).map_err(place)?;
        let mut providers: Vec<Provider> = Vec::new();
        for (number, written) in file.providers.unwrap_or_default().into_iter().enumerate() {
            let provider = written.provider(number)?;
            if providers.iter().any(|before| before.name == provider.name) {
                return Err(InvalidProviders::SameName(number));
            }
            providers.push(provider);
        }
        if providers.is_empty() { Err(InvalidProviders::Empty) } else { Ok(Self(providers)) }
    }

    /// The programs that providers run.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|provider| provider.exec.command.as_str())
    }

    pub(super) fn all(&self) -> &[Provider] {
        &self.0
    }
}

// === impl Written ===

impl Written {
    fn provider(self, number: usize) -> Result<Provider, InvalidProviders> {
        let name = self.name.filter(|name| !name.is_empty()).ok_or(InvalidProviders::NoName(number))?;
        let mut exec = self.exec_config.ok_or(InvalidProviders::NoExecConfig(number))?;
        exec.remove(INTERACTIVE_MODE);
        let exec = ExecConfig::parse(Value::Object(exec).to_string().as_bytes());
        Ok(Provider {
            name,
            exec: exec.map_err(|why| InvalidProviders::ExecConfig(number, why))?,
            args: ArgsPolicy::parse(self.args.as_deref().unwrap_or_default(), number)?,
            env: EnvPolicy::parse(self.env.as_deref().unwrap_or_default(), number)?,
        })
    }
}

// === impl ArgsPolicy ===

impl ArgsPolicy {
    fn parse(text: &str, number: usize) -> Result<Self, InvalidProviders> {
        match text {
            "Append" => Ok(Self::Append),
            "" | "Ignore" => Ok(Self::Ignore),
            _ => Err(InvalidProviders::Policy(number, "profileSourcedCLIArgsPolicy", "Append and Ignore")),
        }
    }
}

// === impl EnvPolicy ===

impl EnvPolicy {
    fn parse(text: &str, number: usize) -> Result<Self, InvalidProviders> {
        let field = "profileSourcedEnvVarsPolicy";
        match text {
            "AppendIfNotExists" => Ok(Self::AppendIfNotExists),
            "Replace" => Ok(Self::Replace),
            "" | "Ignore" => Ok(Self::Ignore),
            _ => Err(InvalidProviders::Policy(number, field, "AppendIfNotExists, Replace and Ignore")),
        }
    }
}
