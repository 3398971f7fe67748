//! Open Cluster Management's Placement: which clusters a workload goes to, as pure functions.
//!
//! Nothing here does IO, asks a clock or knows a client.

pub mod cel;
pub mod durations;
mod names;
mod numbers;
pub mod quantity;
