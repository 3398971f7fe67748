//! The arrows between the workspace's crates, as their manifests have them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arrow::Arrow;

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// Below the workspace's directory.
    pub directory: PathBuf,
    /// To other packages of the workspace, for their tests and build scripts too.
    pub arrows: Vec<Arrow>,
}

/// Every member of the workspace in `workspace`.
///
/// # Panics
///
/// A manifest cannot be read or does not say what it must.
pub fn packages(workspace: &Path) -> Vec<Package> {
    let mut packages: Vec<Package> = members(workspace).into_iter().map(|member| package(workspace, member)).collect();
    let names: Vec<String> = packages.iter().map(|package| package.name.clone()).collect();
    for package in &mut packages {
        package.arrows.retain(|arrow| names.contains(&arrow.to));
    }
    packages
}

fn members(workspace: &Path) -> Vec<PathBuf> {
    let manifest = text(&workspace.join("Cargo.toml"));
    let list =
        manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list of members").0;
    let mut members = Vec::new();
    for member in list.split(',').map(|member| member.trim().trim_matches('"')).filter(|member| !member.is_empty()) {
        match member.strip_suffix("/*") {
            None => members.push(PathBuf::from(member)),
            Some(folder) => {
                let entries = fs::read_dir(workspace.join(folder)).expect("the folder of members");
                let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
                names.sort();
                members.extend(names.iter().map(|name| Path::new(folder).join(name)));
            }
        }
    }
    members
}

fn package(workspace: &Path, directory: PathBuf) -> Package {
    let file = directory.join("Cargo.toml");
    let manifest = text(&workspace.join(&file));
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("the package's name");
    let name = name.trim_matches('"').to_owned();
    let arrow = |(to, line)| Arrow { from: name.clone(), to, file: file.clone(), line };
    let arrows = dependencies(&manifest).into_iter().map(arrow).collect();
    Package { name, directory, arrows }
}

/// What a manifest depends on, each with its line.
fn dependencies(manifest: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default();
            inside = section.ends_with("dependencies");
            if let Some((_, name)) = section.rsplit_once("dependencies.") {
                found.push((name.to_owned(), index + 1));
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            found.push((name.to_owned(), index + 1));
        }
    }
    found
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_dependency_is_read() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true # why\n# c\nd = { path = \"d\" }\n\
            [features]\ne = []\n[dev-dependencies]\nf = \"1\"\n[target.'cfg(unix)'.dependencies]\ng = \"1\"\n\
            [build-dependencies.h]\npath = \"h\"\n";
        let expected = [("b", 4), ("d", 6), ("f", 10), ("g", 12), ("h", 13)];
        assert_eq!(dependencies(manifest), expected.map(|(name, line)| (name.to_owned(), line)));
    }
}
