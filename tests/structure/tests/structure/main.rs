//! The rules on sources, manifests, pages and the gate: one program, which is linked once and reads
//! the sources once. `cargo test -p structure-tests widths` runs those of one module.

mod again;
mod blocks;
mod clients;
mod denied;
mod figures;
mod floors;
mod gaps;
mod memory;
mod names;
mod pages;
mod questions;
mod reasons;
mod recording;
mod sizes;
mod twins;
mod unrun;
mod unused;
mod watchers;
mod widths;
