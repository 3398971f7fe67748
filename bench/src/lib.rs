//! What the benches and the bench program share.

pub mod micro;
