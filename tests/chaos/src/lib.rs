//! Whatever dies, nothing that was told as done is undone or done twice, and no stream that was cut
//! looks whole: tried on real control planes.
//!
//! A hub, two members (one behind a tunnel), two gateways, two tunnel-servers and two agents, each
//! program a process of its own ([`world`]). Callers write, watch, follow and upload through it and
//! write down what they are told ([`load`]). Meanwhile one process after another is killed, frozen
//! or replaced, certificates change, disks fill up ([`fault`]). What was told is compared with what
//! the members have ([`ledger`]).

pub mod caller;
pub mod dice;
pub mod fault;
pub mod feed;
pub mod ledger;
pub mod lines;
pub mod load;
pub mod programs;
pub mod report;
pub mod run;
pub mod told;
pub mod weather;
pub mod world;
