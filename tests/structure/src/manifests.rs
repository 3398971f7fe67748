//! The dependencies between the workspace's crates, from their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arrow::Arrow;

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// Path below the workspace's directory.
    pub directory: PathBuf,
    /// Name of its library in sources.
    pub library: String,
    /// Dependencies on other packages of the workspace, including those of tests and build scripts.
    pub arrows: Vec<Arrow>,
    pub dependencies: Vec<Dependency>,
}

/// A dependency in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Cargo's name of the package.
    pub name: String,
    /// Line in the manifest, counted from 1.
    pub line: usize,
    pub is_for_tests: bool,
}

/// Every member of the workspace in `workspace`.
///
/// # Panics
///
/// If a manifest cannot be read or lacks a necessary entry.
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
    let library = manifest.split_once("[lib]\nname = \"").and_then(|(_, rest)| rest.split_once('"'));
    let library = library.map_or_else(|| name.replace('-', "_"), |(library, _)| library.to_owned());
    let dependencies = dependencies(&manifest);
    let arrow = |to: &Dependency| Arrow { from: name.clone(), to: to.name.clone(), file: file.clone(), line: to.line };
    let arrows = dependencies.iter().map(arrow).collect();
    Package { name, directory, library, arrows, dependencies }
}

fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let (mut inside, mut is_for_tests) = (false, false);
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        let mut add = |name: &str, is_for_tests| {
            found.push(Dependency { name: name.to_owned(), line: index + 1, is_for_tests });
        };
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default();
            (inside, is_for_tests) = (section.ends_with("dependencies"), section.contains("dev-dependencies"));
            if let Some((_, name)) = section.rsplit_once("dependencies.") {
                add(name, is_for_tests);
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            add(line.split(['.', ' ', '=']).next().unwrap_or_default(), is_for_tests);
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
        let expected = [("b", 4, false), ("d", 6, false), ("f", 10, true), ("g", 12, false), ("h", 13, false)];
        let dependency =
            |(name, line, is_for_tests): (&str, _, _)| Dependency { name: name.to_owned(), line, is_for_tests };
        assert_eq!(dependencies(manifest), expected.map(dependency));
    }
}
