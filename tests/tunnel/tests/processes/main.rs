//! Agents and servers as processes that are killed, frozen and asked to end: what their users see
//! of it.

mod agent;
mod process;
mod server;
