//! Any `/proc/self/cgroup`: the least limit of the groups in it and above them, and nothing from
//! outside of the control groups.
//!
//! Input: the file.

use std::path::Path;

pub const WORDS: &[&str] =
    &["0::", "/", "/a", "/a/b", "..", ".", "\n", "5:cpu,memory:", "4:cpuset:", "::", ":", "memory"];

/// Groups in [`ROOT`], and the limits that their files have.
const V2: [(&str, u64); 3] = [("", 4000), ("a", 3000), ("a/b/c", 2000)];
const V1: [(&str, u64); 2] = [("", 1500), ("a/b", 1000)];
/// Limit in a file outside of the groups.
const OUTSIDE: u64 = 7;
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/groups/cgroup");

pub fn check(input: &[u8]) {
    let Ok(own) = std::str::from_utf8(input) else { return };
    let found = net::memory::of_groups(Path::new(ROOT), own);
    assert_ne!(found, Some(OUTSIDE), "a file outside of the groups was read");
    if own.split(['/', ':', '\n']).all(|part| part != "." && !part.contains("..")) {
        assert_eq!(found, own.lines().filter_map(least).min());
    }
}

/// cgroups(7): `hierarchy:controllers:path`.
fn least(line: &str) -> Option<u64> {
    let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
    let limits = match controllers.split(',').collect::<Vec<_>>().as_slice() {
        [""] => &V2[..],
        names if names.contains(&"memory") => &V1[..],
        _ => return None,
    };
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let above = |group: &str| {
        let wanted: Vec<_> = group.split('/').filter(|part| !part.is_empty()).collect();
        parts.starts_with(&wanted)
    };
    limits.iter().filter(|(group, _)| above(group)).map(|(_, limit)| *limit).min()
}
