//! `krew.sh`: archives and a manifest that krew accepts.

#[path = "krew/index.rs"]
mod index;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-clusters");

fn pack(words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("krew.sh");
    Command::new("sh").arg(script).args(words).output().expect("there is a shell")
}

/// A program of a few bytes that does what the packed one does: to compress that takes seconds,
/// built as it is for tests.
fn stand_in(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("stand-in");
    std::fs::write(&path, format!("#!/bin/sh\nexec \"{PROGRAM}\" \"$@\"\n")).expect("a file");
    path
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_manifest_names_archives_that_hold_the_program() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().to_str().expect("text");
    let stand_in = stand_in(&directory);
    let (linux, mac) = (format!("linux-amd64={PROGRAM}"), format!("darwin-arm64={}", stand_in.display()));
    let output = pack(&["v0.1.0", "https://example.com/v0.1.0/", path, &linux, &mac]);
    assert!(output.status.success(), "{output:?}");
    let manifest: Value = serde_saphyr::from_slice(&output.stdout).expect("YAML");
    // https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&manifest["kind"], &manifest["metadata"]["name"]), (&json!("Plugin"), &json!("clusters")));
    let spec = &manifest["spec"];
    assert_eq!(spec["version"], "v0.1.0");
    for field in ["homepage", "shortDescription", "description"] {
        assert!(spec[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {spec}");
    }
    let platforms = spec["platforms"].as_array().expect("platforms");
    let labels: Vec<_> = platforms.iter().map(|platform| &platform["selector"]["matchLabels"]).collect();
    assert_eq!(labels, [&json!({"os": "linux", "arch": "amd64"}), &json!({"os": "darwin", "arch": "arm64"})]);
    for platform in platforms {
        let uri = platform["uri"].as_str().expect("a URI");
        let archive: PathBuf = directory.path().join(uri.strip_prefix("https://example.com/v0.1.0/").expect("a file"));
        let sum = run(Command::new("sha256sum").arg(&archive));
        assert_eq!(sum.split(' ').next(), platform["sha256"].as_str());
        let listed = run(Command::new("tar").arg("-tzf").arg(&archive));
        let from: Vec<_> = platform["files"].as_array().expect("files").iter().map(|file| &file["from"]).collect();
        assert_eq!(from, listed.lines().collect::<Vec<_>>());
        let unpacked = TempDir::new_in(&directory).expect("a directory");
        run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(unpacked.path()));
        let bin = unpacked.path().join(platform["bin"].as_str().expect("a program"));
        assert!(run(Command::new(bin).arg("--version")).starts_with("kubectl-clusters "));
    }
}

#[test]
fn what_krew_would_refuse_is_not_packed() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().to_str().expect("text");
    let good = format!("linux-amd64={PROGRAM}");
    for (version, platform, told) in [
        ("0.1.0", &*good, "krew wants v0.1.0"),
        ("v0.1.0", "plan9-amd64=x", "write linux-amd64=PROGRAM"),
        ("v0.1.0", "linux-amd64=/no/program", "cargo build"),
    ] {
        let output = pack(&[version, "https://example.com", path, platform]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(told), "{version} {platform}: {error}");
    }
}
