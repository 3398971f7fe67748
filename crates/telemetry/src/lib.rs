//! Logs, metrics, readiness, the endpoint that tells them and the flags all programs share: what an
//! operator sees.

pub mod admin;
pub mod certificates;
pub mod flags;
pub mod histogram;
pub mod logs;
pub mod metrics;
mod process;
pub mod readiness;
