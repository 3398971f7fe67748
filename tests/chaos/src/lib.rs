//! Whatever dies, no write that was confirmed is undone or done twice, and no cut stream looks
//! whole: tried on real control planes.
//!
//! A hub, two members (one behind a tunnel), two gateways, two tunnel-servers and two agents, each
//! program a process of its own ([`world`]). Callers write, watch, follow and upload through it and
//! record the answers ([`load`]). Meanwhile one process after another is killed, frozen or
//! replaced, certificates change, disks fill up ([`fault`]). The recorded answers are compared with
//! the members' content ([`ledger`]).

pub mod caller;
pub mod conclusion;
pub mod dice;
pub mod fault;
pub mod feed;
pub mod ledger;
pub mod lines;
pub mod load;
pub mod programs;
pub mod report;
pub mod run;
pub mod weather;
pub mod world;
