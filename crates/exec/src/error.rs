//! Why no credential was issued. The texts are those of client-go and the Go cluster-gateway, where
//! these have one. None contains a plugin's standard output, and its standard error only after
//! [`crate::redact`].

use std::time::Duration;

use net::tls::keypair::KeyPairError;
use net::words;

/// Why no credential was issued. Commands are as in the Secret.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("exec: executable {command} is not allowed here: the gateway's operator must list it in --exec-commands")]
    NotAllowed { command: String },
    /// A variable could make an allowed command run anything.
    #[error(
        "exec: environment variable {name} is not allowed here: remove it, or have the gateway's operator list it in \
         --exec-env"
    )]
    VariableNotAllowed { name: String },
    #[error("exec: {command} is a relative path: write an absolute path, or a name to be found in PATH")]
    RelativePath { command: String },
    /// `hint` is empty, or `: ` and the Secret's `installHint`.
    #[error("exec: executable {command} not found{hint}")]
    NotFound { command: String, hint: String },
    #[error("exec: executable {command} cannot be started: {}", words::io(.source))]
    Start { command: String, source: std::io::Error },
    /// `slow`: whether a first try ran and was too short.
    #[error("exec: {limit} other plugins have been running for {after:?}: find the one that hangs, or retry")]
    Busy { limit: usize, after: Duration, slow: bool },
    /// `stderr` is empty, or `: ` and the last words.
    #[error("exec: executable {command} did not finish within {after:?} and was killed{stderr}")]
    Timeout { command: String, after: Duration, stderr: String },
    #[error("exec: executable {command} wrote more than {limit} bytes to stdout and was killed")]
    TooMuchOutput { command: String, limit: usize },
    #[error("exec: executable {command} cannot be read from: {}", words::io(.source))]
    Read { command: String, source: std::io::Error },
    #[error("exec: executable {command} failed with exit code {code}{stderr}")]
    ExitCode { command: String, code: i32, stderr: String },
    #[error("exec: executable {command} was ended by signal {signal}{stderr}")]
    Signal { command: String, signal: i32, stderr: String },
    #[error("decoding stdout: no JSON object of kind ExecCredential (line {line}, column {column})")]
    Decode { line: usize, column: usize },
    #[error("decoding stdout: the object's kind is {kind:?}, not ExecCredential")]
    Kind { kind: String },
    #[error("exec plugin is configured to use API version {configured}, plugin returned version {returned}")]
    Version { configured: &'static str, returned: String },
    #[error("exec plugin didn't return a status field")]
    NoStatus,
    #[error("exec plugin didn't return a token or cert/key pair")]
    NoCredential,
    #[error("exec plugin returned only certificate or key, not both")]
    HalfPair,
    #[error("exec plugin returned a token with characters that are invalid in a bearer token")]
    Token,
    #[error("exec plugin returned an unusable client certificate: {0}")]
    Certificate(#[from] KeyPairError),
    #[error("exec plugin returned an expirationTimestamp that is not an RFC 3339 time")]
    Expiration,
    /// The gateway stops, or the cluster was removed.
    #[error("exec: the run was abandoned")]
    Ended,
}

// === impl ExecError ===

impl ExecError {
    /// The value of a metric's label.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } | Self::VariableNotAllowed { .. } | Self::RelativePath { .. } => "refused",
            Self::NotFound { .. } => "not_found",
            Self::Start { .. } | Self::Read { .. } | Self::Ended => "error",
            Self::Busy { .. } => "busy",
            Self::Timeout { .. } => "timeout",
            Self::ExitCode { .. } | Self::Signal { .. } => "failed",
            Self::TooMuchOutput { .. }
            | Self::Decode { .. }
            | Self::Kind { .. }
            | Self::Version { .. }
            | Self::NoStatus
            | Self::NoCredential
            | Self::HalfPair
            | Self::Token
            | Self::Certificate(_)
            | Self::Expiration => "bad_output",
        }
    }
}
