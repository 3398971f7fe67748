//! The programs' access to the hub: clients with the same settings, calls bounded in size, time and
//! number, watches line by line, and the election of one leader among replicas.

mod bounded;
mod calls;
mod certificate;
pub mod client;
pub mod election;
mod failure;
mod lines;
mod pages;
pub mod pool;
mod requests;
mod streamed;
pub mod through;
mod watcher;
mod watches;

pub use self::calls::{Hub, Meter, Watching};
pub use self::certificate::ClientCertificate;
pub use self::failure::{Cause, Collection, HubFailure, cause_text};
pub use self::lines::{Line, Lines};
pub use self::pages::{PAGE, paged};
pub use self::requests::Requests;
pub use self::watcher::watcher;
pub use self::watches::{WatchPermit, Watches};
