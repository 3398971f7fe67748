//! Bodies of any length in both directions: as they come, held back by a side that does not read,
//! and never cut without a sign.

mod answers;
mod cancelling;
mod continuing;
mod duplex;
mod early;
mod truncation;
mod uploads;

use std::time::Duration;

pub(crate) use self::truncation::cuts;

/// An immediate event comes within this on a busy machine too, and long before any timer that would
/// make up for it.
const AT_ONCE: Duration = Duration::from_secs(5);
