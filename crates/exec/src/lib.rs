//! Dynamic credentials: what a member takes is issued by a program, as client-go's exec plugins do
//! (`k8s.io/client-go/plugin/pkg/client/auth/exec`).
//!
//! [`Plugins`] runs one such program, bounded in time, memory and number, and in a process group of
//! its own. [`Credentials`] keeps what they issue: one run however many requests wait, renewed
//! before it expires, and again when a member rejects it. What a program says on its standard error
//! reaches errors only without what looks like a secret.

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
