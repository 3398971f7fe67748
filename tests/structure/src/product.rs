//! The sources of the programs: what an operator runs, and what it is made of.

use std::path::{Path, PathBuf};

use crate::manifests::packages;
use crate::modules::trees;

/// Where the programs are; their libraries are in `crates`.
const PROGRAMS: [&str; 5] = ["cli", "controllers", "gateway", "tunnel-agent", "tunnel-server"];

/// The files of programs and libraries, below `workspace`. Those for tests only are not among them.
///
/// # Panics
///
/// A manifest or a declared module cannot be read.
pub fn files(workspace: &Path) -> Vec<PathBuf> {
    let packages = packages(workspace);
    let is_product = |directory: &Path| {
        directory.starts_with("crates") || PROGRAMS.iter().any(|program| directory == Path::new(program))
    };
    let products = packages.iter().filter(|package| is_product(&package.directory));
    products.flat_map(|package| trees(workspace, &package.directory)).flat_map(|tree| tree.files).collect()
}
