//! Reads the workspace's own text: which crate depends on which ([`manifests`]), and which module
//! uses which of its siblings ([`modules`]). What is allowed is data, in [`floors`].
//!
//! The reading is lexical: comments, strings and code for tests only are left out, and every path
//! that starts at the crate's root or at a module above is an arrow. Paths that a macro builds are
//! not found.

pub mod arrow;
pub mod blocks;
pub mod circles;
pub mod denied;
pub mod figures;
pub mod floors;
pub mod gaps;
pub mod links;
pub mod manifests;
pub mod modules;
pub mod names;
mod paths;
pub mod product;
pub mod questions;
pub mod reasons;
pub mod recording;
pub mod rooms;
pub mod sizes;
mod tests_out;
mod tokens;
pub mod twins;
pub mod unrun;
pub mod unused;
pub mod widths;

use std::path::{Path, PathBuf};

/// The directory of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
