//! The hub as programs use it: clients set up alike, calls bounded in size, time and number, and
//! the lines of watches.

mod calls;
pub mod client;
mod failure;
mod lines;
mod watches;

pub use self::calls::{Hub, Meter, Watching};
pub use self::failure::{Cause, Collection, HubFailure, Verb};
pub use self::lines::Line;
