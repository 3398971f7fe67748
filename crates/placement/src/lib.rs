//! Open Cluster Management's Placement: which clusters a workload goes to, as pure functions.
//!
//! Nothing here does IO, reads a clock or knows a client: [`schedule`] turns an [`Input`] into an
//! [`Outcome`], and [`slices`] makes the objects that should exist. Results are those of Open
//! Cluster Management's scheduler (v1.2.0, with which the tests compare them), integer by integer;
//! a comment explains each difference.
//!
//! # Kept although it surprises
//!
//! - A taint `PreferNoSelect` is always tolerated.
//! - Mistakes in predicates and tolerations are found only when there is a cluster for them.
//! - The first toleration that fits counts, though a later one may last longer.
//! - The end of a toleration is a timer only for clusters that are decided already. A cluster that
//!   is chosen now gets its timer from the run that its own decision causes.
//! - Balance counts decisions of all namespaces, also of clusters that are not candidates.
//! - An add-on's score that is configured twice counts twice; a built-in one, once.
//! - `numberOfClusters: 0` is `NoManagedClusterMatched`.
//!
//! # Different on purpose
//!
//! - A Placement that cannot be evaluated keeps its decisions: [`Outcome::groups`] is none. So does
//!   a Placement with a set whose selector cannot be read, which upstream retries for ever without
//!   a word.
//! - All predicates of a run share one limit of steps, beyond which the Placement is misconfigured.
//! - A negative `numberOfClusters` is 0, and seconds beyond all time do not wrap.
//! - Scores outside of −100 to 100 count as they are, with a warning.
//! - Fields that are ignored are named in the condition's message.
//!
//! # Use
//!
//! A caller keeps [`index::Decisions`] and [`index::Scores`] up to date as it watches, and a
//! [`Prepared`] of each Placement's generation, which has the compiled expressions.

mod candidates;
pub mod cel;
pub mod conditions;
pub mod durations;
pub mod explain;
pub mod index;
mod input;
pub mod labels;
mod names;
mod numbers;
pub mod objects;
mod outcome;
mod predicates;
pub mod prepared;
mod prioritizers;
pub mod quantity;
mod schedule;
pub mod selector;
pub mod slices;
pub mod taints;
pub mod tree;

pub use self::input::Input;
pub use self::outcome::{Candidate, Filter, Group, Outcome, Scored, Warning};
pub use self::prepared::Prepared;
pub use self::schedule::schedule;
