//! Bodies of any length in both directions: as they come, held back by who does not read, and never cut without saying so.

mod answers;
mod cancelling;
mod continuing;
mod duplex;
mod early;
mod truncation;
mod uploads;
