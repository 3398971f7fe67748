//! What the Dockerfile builds is made of nothing that its context lacks.
//!
//! `.dockerignore` hides pages and charts, and no docker is here to notice a source that includes
//! one of them. Cargo tells what each program was made of.

use std::fs;
use std::path::{Path, PathBuf};

use harness::program::Program;

/// What the Dockerfile runs, beside what that builds.
const DIST: &str = "dist";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("a workspace")
}

/// Cargo's list of a program's sources, if it was built here.
fn sources(program: &str) -> Option<String> {
    let executable = std::env::current_exe().expect("this test");
    let built = executable.parent()?.parent()?;
    fs::read_to_string(built.join(format!("{program}.d"))).ok()
}

/// The files among them that are the workspace's own: what a build makes is made there, too.
fn files<'a>(sources: &'a str, root: &Path) -> Vec<&'a str> {
    let root = format!("{}/", root.display());
    let (_, files) = sources.split_once(": ").expect("a list");
    let own = files.split_whitespace().filter_map(|file| file.strip_prefix(root.as_str()));
    own.filter(|file| !file.starts_with("target/")).collect()
}

/// Whether `.dockerignore` hides the file: by a pattern for it, or for a directory above it.
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

#[test]
fn programs_are_built_of_what_the_context_has() {
    let root = workspace();
    let hidden = fs::read_to_string(root.join(".dockerignore")).expect("a .dockerignore");
    let programs = Program::TRAINED.into_iter().chain([Program::Controllers]).map(Program::binary).chain([DIST]);
    let mut seen = 0;
    let mut missing = Vec::new();
    for program in programs {
        // This crate alone may be built without the others; never some of them.
        let Some(sources) = sources(program) else {
            missing.push(program);
            continue;
        };
        let files = files(&sources, &root);
        assert!(files.len() > 10, "{program}: {files:?}");
        let wrong: Vec<_> = files.iter().filter(|file| is_hidden(&hidden, file)).collect();
        assert!(wrong.is_empty(), "{program} is built of what .dockerignore hides: {wrong:?}");
        seen += 1;
    }
    assert!(missing.is_empty() || seen == 1, "not built: {missing:?}");
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
