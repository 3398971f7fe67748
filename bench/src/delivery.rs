//! Delivery to scripted members: the members behind the gateway, and the objects on the hub.

mod body;
mod member;
pub mod members;
pub mod objects;
pub mod server;
pub mod writes;
