//! Agents and servers as processes that are killed, frozen and asked to end: the effects on their
//! users.

mod agent;
mod process;
mod server;
