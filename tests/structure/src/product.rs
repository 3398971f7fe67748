//! The sources of the programs that an operator runs, and of their libraries.

use std::path::{Path, PathBuf};

use crate::manifests::packages;
use crate::modules::trees;

/// Directories of the programs; their libraries are in `crates`.
const PROGRAMS: [&str; 5] = ["cli", "controllers", "gateway", "tunnel-agent", "tunnel-server"];

/// The files of programs and libraries, below `workspace`, without those for tests only.
///
/// # Panics
///
/// If a manifest or a declared module cannot be read.
pub fn files(workspace: &Path) -> Vec<PathBuf> {
    let packages = packages(workspace);
    let is_product = |directory: &Path| {
        directory.starts_with("crates") || PROGRAMS.iter().any(|program| directory == Path::new(program))
    };
    let products = packages.iter().filter(|package| is_product(&package.directory));
    products.flat_map(|package| trees(workspace, &package.directory)).flat_map(|tree| tree.files).collect()
}
