//! Delivery to scripted members: what stands behind the gateway, and what is put on the hub.

mod body;
mod member;
pub mod members;
pub mod objects;
pub mod server;
pub mod writes;
