//! The operator's view of a program: logs, metrics, readiness, the endpoint for them, and the flags
//! that all programs share.

pub mod admin;
pub mod certificates;
pub mod flags;
pub mod histogram;
pub mod logs;
pub mod metrics;
mod process;
pub mod readiness;
