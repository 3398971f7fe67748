//! The hub as programs use it: clients set up alike, calls bounded in size, time and number, and
//! the lines of watches.

mod calls;
pub mod client;
mod collection;
mod failure;
mod lines;
mod watches;

pub use self::calls::{Hub, Watching};
pub use self::collection::Collection;
pub use self::failure::{Cause, HubFailure, Verb};
pub use self::lines::Line;
