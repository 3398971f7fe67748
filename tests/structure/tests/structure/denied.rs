//! Only what `deny.toml` allows is built: licences, banned crates, sources, second versions.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use structure_tests::denied::{list, permits, skipped, unskipped};
use structure_tests::workspace;

fn text(file: &str) -> String {
    fs::read_to_string(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every package that is built on this machine for the programs and their tests, with its licence,
/// for the features that Cargo chooses: its lock file also has packages that no feature needs.
fn built() -> BTreeMap<String, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{l}|"]);
    let output = cargo.args(["--edges", "normal,build,dev"]).current_dir(workspace()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("text");
    let package = |line: &str| {
        let mut parts = line.split('|');
        let (package, license) = (parts.next()?, parts.next()?);
        Some((package.to_owned(), license.to_owned()))
    };
    lines.lines().filter_map(package).collect()
}

#[test]
fn every_licence_is_allowed() {
    let allowed = list(&text("deny.toml"), "allow");
    let built = built();
    assert!(built.len() > 100, "{} packages", built.len());
    let wrong: Vec<_> = built.iter().filter(|(_, license)| !permits(license, &allowed)).collect();
    assert!(wrong.is_empty(), "not among the licences of deny.toml: {wrong:#?}");
}

fn name(package: &str) -> String {
    package.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn nothing_banned_is_built() {
    let banned = list(&text("deny.toml"), "deny");
    let built = built();
    let wrong: Vec<_> = built.keys().filter(|package| banned.contains(&name(package))).collect();
    assert!(!banned.is_empty() && wrong.is_empty(), "banned by deny.toml: {wrong:?}");
}

#[test]
fn everything_comes_from_the_registry() {
    let lock = text("Cargo.lock");
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    for source in sources {
        assert_eq!(source, "\"registry+https://github.com/rust-lang/crates.io-index\"");
    }
}

#[test]
fn each_version_beside_the_newest_of_a_crate_is_known() {
    let (skipped, lock) = (skipped(&text("deny.toml")), text("Cargo.lock"));
    let of = |key: &str, line: &str| Some(line.strip_prefix(key)?.trim_matches('"').to_owned());
    let lines: Vec<&str> = lock.lines().collect();
    let package = |pair: &[&str]| Some((of("name = ", pair[0])?, of("version = ", pair[1])?));
    let locked: Vec<_> = lines.windows(2).filter_map(package).collect();
    assert!(locked.len() > 100, "{} packages", locked.len());
    assert_eq!(unskipped(&locked, &skipped), [""; 0], "see `skip` of deny.toml");
}
