//! Dynamic credentials: a program issues the credential for a member, like client-go's exec plugins
//! (`k8s.io/client-go/plugin/pkg/client/auth/exec`).
//!
//! [`Plugins`] runs one such program, bounded in time, memory and number, and in its own process
//! group. [`Credentials`] caches the credentials: one run for all waiting requests, renewed before
//! expiry, and again when a member rejects it. A program's standard error only reaches error texts
//! after text that looks like a secret was removed.

mod cache;
mod command;
mod credential;
#[doc(hidden)]
pub mod edges;
mod error;
mod output;
mod plugins;
mod process;
mod redact;
mod request;
#[cfg(test)]
mod testing;

pub use self::cache::{Credentials, Observer, Source};
pub use self::command::Commands;
pub use self::credential::{Credential, Issued};
pub use self::error::ExecError;
pub use self::plugins::{MOST_RUNNING, Plugins, Runner, Standing};
pub use self::process::end_all;
pub use self::request::{ClusterInfo, Request};
