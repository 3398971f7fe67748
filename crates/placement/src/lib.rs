//! Open Cluster Management's Placement: which clusters a workload goes to, as pure functions.
//!
//! Nothing here does IO, asks a clock or knows a client: [`schedule`] makes an [`Outcome`] of an
//! [`Input`], and [`slices`] the objects that should be there. Results are those of Open Cluster
//! Management v1.3's scheduler, integer by integer; where they differ, the reason is beside it.
//!
//! A caller keeps [`index::Decisions`] and [`index::Scores`] up to date as it watches, and a
//! [`Prepared`] of each Placement's generation: expressions are compiled in there.

mod candidates;
pub mod cel;
pub mod conditions;
pub mod durations;
mod groups;
pub mod index;
mod input;
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

pub use self::input::Input;
pub use self::outcome::{Candidate, Filter, Group, Outcome, Scored, Warning};
pub use self::prepared::Prepared;
pub use self::schedule::schedule;
