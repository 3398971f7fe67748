//! Open Cluster Management's Placement: which clusters a workload goes to, as pure functions.
//!
//! Nothing here does IO, asks a clock or knows a client: [`schedule`] makes an [`Outcome`] of an
//! [`Input`], and [`slices`] the objects that should be there. Results are those of Open Cluster
//! Management's scheduler (v1.2.0, with which the tests compare them), integer by integer; where
//! they differ, the reason is beside it.
//!
//! # Kept although it surprises
//!
//! - A taint `PreferNoSelect` is always tolerated.
//! - What is wrong with predicates and tolerations is found only when there is a cluster for them.
//! - The first toleration that fits counts, though a later one may last longer.
//! - The end of a toleration is a timer only for clusters that are decided already. One that is
//!   chosen now has its timer from the run that its own decision brings about.
//! - Balance counts decisions of all namespaces, of clusters that are no candidates too.
//! - An add-on's score that is configured twice counts twice; a built-in one, once.
//! - `numberOfClusters: 0` is `NoManagedClusterMatched`.
//!
//! # Different on purpose
//!
//! - A Placement that cannot be evaluated keeps its decisions: [`Outcome::groups`] is none. So does
//!   one with a set whose selector cannot be read, which upstream tries for ever in silence.
//! - All expressions of a run have a bound together, beyond which the Placement is misconfigured.
//! - A negative `numberOfClusters` is 0, and seconds beyond all time do not wrap.
//! - Scores outside of −100 to 100 count as they are, and are warned of.
//! - Fields that are not looked at are named in the condition's message.
//!
//! # Use
//!
//! A caller keeps [`index::Decisions`] and [`index::Scores`] up to date as it watches, and a
//! [`Prepared`] of each Placement's generation: expressions are compiled in there.

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
