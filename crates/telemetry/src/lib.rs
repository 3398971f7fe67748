//! Logs, metrics and readiness: what an operator sees.

pub mod causes;
pub mod logs;
pub mod metrics;
pub mod readiness;
