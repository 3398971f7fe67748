//! The Dockerfile's build stage: it builds nothing from files that its context lacks, and calls
//! cargo for what there is.
//!
//! `.dockerignore` hides pages and charts, and no docker runs here that would notice a source that
//! includes one of them. Cargo's build records list the sources of each program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::program::{Profile, Program};
use serde_json::Value;

/// The program that the Dockerfile runs, besides the programs which that one builds.
const DIST: &str = "dist";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("a workspace")
}

/// The workspace's crates in a program: its own, and those it depends on.
fn crates(metadata: &Value, program: &str) -> BTreeSet<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    let named = |name: &str| packages.iter().find(|package| package["name"] == name).expect("a package");
    let own = packages.iter().find(|package| target(package, "bin", Some(program)).is_some());
    let mut found = BTreeSet::new();
    let mut open = vec![own.unwrap_or_else(|| panic!("no package builds {program}"))];
    while let Some(package) = open.pop() {
        let library = target(package, "lib", None);
        if !library.is_some_and(|library| found.insert(library.replace('-', "_"))) {
            continue;
        }
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        let local = dependencies.filter(|one| one["kind"] != "dev" && one["path"].is_string());
        open.extend(local.map(|one| named(one["name"].as_str().expect("a name"))));
    }
    found
}

/// The name of a package's target of a kind: the first one, or the one named `name`.
fn target<'a>(package: &'a Value, kind: &str, name: Option<&str>) -> Option<&'a str> {
    let mut targets = package["targets"].as_array()?.iter();
    let found = targets.find(|one| one["kind"][0] == kind && name.is_none_or(|name| one["name"] == name))?;
    found["name"].as_str()
}

fn metadata(root: &Path) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root);
    let output = cargo.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata")
}

/// The compiler's list of a library's sources, if it was built here. Cargo's own list of a whole
/// program is written only when that program is built by name, which tests do not do.
fn sources(library: &str) -> Option<String> {
    let executable = std::env::current_exe().expect("this test");
    let mut newest = None;
    for entry in fs::read_dir(executable.parent()?).expect("a directory").flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(hash) = name.strip_prefix(library).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".d")) else {
            continue;
        };
        let text = fs::read_to_string(entry.path()).expect("a list");
        // The line of the library itself, not of its tests, which read more.
        let output = format!("lib{library}-{hash}.rlib: ");
        let Some((_, files)) = text.lines().find_map(|line| line.split_once(&output)) else { continue };
        let built = entry.metadata().and_then(|file| file.modified()).expect("a time");
        if newest.as_ref().is_none_or(|(time, _)| *time < built) {
            newest = Some((built, files.to_owned()));
        }
    }
    newest.map(|(_, files)| files)
}

/// The workspace's own files among `sources`, without files that a build generates, since docker's
/// build generates them, too.
fn files(sources: &str, root: &Path) -> Vec<String> {
    let all = sources.split_whitespace().map(|file| root.join(file).canonicalize().unwrap_or_else(|_| file.into()));
    let own = all.filter_map(|file| Some(file.strip_prefix(root).ok()?.to_str()?.to_owned()));
    own.filter(|file| !file.starts_with("target/")).collect()
}

/// Whether `.dockerignore` hides the file: with a pattern for it, or for a directory above it.
fn is_hidden(patterns: &str, file: &str) -> bool {
    let patterns = patterns.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parts: Vec<&str> = file.split('/').collect();
    patterns.into_iter().any(|pattern| {
        assert!(!pattern.contains(['!', '?', '[', '\\']), "not understood: {pattern}");
        let pattern: Vec<&str> = pattern.trim_matches('/').split('/').collect();
        (1..=parts.len()).any(|depth| matches(&pattern, &parts[..depth]))
    })
}

fn matches(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skipped| matches(rest, &path[skipped..])),
        (Some((first, rest)), Some((part, further))) => {
            let fits = match first.split_once('*') {
                Some((start, end)) => {
                    part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
                }
                None => first == part,
            };
            fits && matches(rest, further)
        }
        _ => false,
    }
}

fn text(file: &str) -> String {
    fs::read_to_string(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The programs that have an image.
fn programs() -> impl Iterator<Item = &'static str> {
    Program::TRAINED.into_iter().chain([Program::Controllers]).map(Program::binary)
}

/// Cargo reads the manifests of all members, and misses every target that one of them names.
#[test]
fn cargo_finds_in_the_context_what_it_reads() {
    let (root, hidden) = (workspace(), text(".dockerignore"));
    let metadata = metadata(&root);
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let of_packages = packages.flat_map(|package| {
        let targets = package["targets"].as_array().expect("targets").iter().map(|target| &target["src_path"]);
        targets.chain([&package["manifest_path"]]).map(|path| PathBuf::from(path.as_str().expect("a path")))
    });
    let own = ["Cargo.toml", "Cargo.lock", ".cargo/config.toml"].map(|file| root.join(file));
    let needed: Vec<_> = of_packages.chain(own).collect();
    assert!(needed.len() > 50, "only {} files", needed.len());
    for path in needed {
        let file = path.strip_prefix(&root).expect("within the workspace").to_str().expect("a name");
        assert!(path.exists() && !is_hidden(&hidden, file), "cargo needs {file}, which docker's context lacks");
    }
}

#[test]
fn the_build_stage_calls_cargo_for_what_there_is() {
    let (dockerfile, manifest) = (text("Dockerfile"), text("Cargo.toml"));
    let metadata = metadata(&workspace());
    let (_, call) = dockerfile.split_once("cargo run ").expect("it builds with cargo");
    let mut words = call.split_whitespace().take_while(|word| *word != "--");
    let (mut package, mut profile) = (None, "dev");
    while let Some(word) = words.next() {
        match word {
            "--locked" => {}
            "--release" => profile = "release",
            "--package" => package = words.next(),
            other => panic!("not known here: {other}"),
        }
    }
    let package = package.expect("a package");
    let mut packages = metadata["packages"].as_array().expect("packages").iter();
    let package = packages.find(|one| one["name"] == package).unwrap_or_else(|| panic!("no package {package}"));
    let kinds = package["targets"].as_array().expect("targets").iter().map(|target| &target["kind"][0]);
    assert_eq!(kinds.filter(|kind| **kind == "bin").count(), 1, "which of its programs?");
    for profile in [profile, Profile::Shipped.name()] {
        assert!(manifest.contains(&format!("\n[profile.{profile}]\n")), "no profile {profile}");
    }
    let rust = package["rust_version"].as_str().expect("a version");
    assert!(dockerfile.contains(&format!("\nFROM rust:{rust}-")), "not the Rust {rust} that cargo requires");
}

#[test]
fn every_image_copies_what_the_build_stage_makes() {
    let dockerfile = text("Dockerfile");
    let mut copies: Vec<_> = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")).collect();
    copies.sort_unstable();
    let images = programs().map(|program| format!("--from=build /image/{program} /"));
    let mut expected: Vec<_> = images.chain([". .".to_owned()]).collect();
    expected.sort_unstable();
    assert_eq!(copies, expected);
    for program in programs() {
        assert!(dockerfile.contains(&format!("\nFROM scratch AS {program}\n")), "no stage of {program}");
    }
}

#[test]
fn programs_are_built_of_what_the_context_has() {
    let root = workspace();
    let hidden = fs::read_to_string(root.join(".dockerignore")).expect("a .dockerignore");
    let metadata = metadata(&root);
    let programs = programs().chain([DIST]);
    let (mut read, mut missing) = (BTreeSet::new(), BTreeSet::new());
    let libraries: BTreeSet<_> = programs.flat_map(|program| crates(&metadata, program)).collect();
    for library in libraries {
        let Some(sources) = sources(&library) else {
            missing.insert(library);
            continue;
        };
        let files = files(&sources, &root);
        assert!(files.iter().any(|file| file.ends_with("src/lib.rs")), "{library}: {files:?}");
        let wrong: Vec<_> = files.iter().filter(|file| is_hidden(&hidden, file)).collect();
        assert!(wrong.is_empty(), "{library} is built of what .dockerignore hides: {wrong:?}");
        read.insert(library);
    }
    // This crate may be built without the programs, but not with only some of them.
    let programs = ["gateway", "tunnel_server", "tunnel_agent", "controllers"];
    let built = programs.iter().filter(|program| read.contains(**program)).count();
    assert!(built == 0 || missing.is_empty(), "not built: {missing:?}, of {read:?}");
}

#[test]
fn patterns_hide_what_docker_says() {
    let patterns = "# a comment\n.git\n**/target\ncharts\n**/*.md\nDockerfile\n";
    for file in ["charts/cluster-gateway/values.yaml", "README.md", "docs/cli.md", "fuzz/target/x", "Dockerfile"] {
        assert!(is_hidden(patterns, file), "{file}");
    }
    for file in ["crates/api/src/lib.rs", "tests/charts/x.rs", "a.md.rs", "Dockerfile.rs"] {
        assert!(!is_hidden(patterns, file), "{file}");
    }
}
