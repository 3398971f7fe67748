//! A target a module: `check`, and `WORDS` that inputs are made of.

pub mod accept;
pub mod access;
pub mod destination;
pub mod list_options;
pub mod registration;
pub mod route;
pub mod secret;
