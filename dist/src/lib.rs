//! Our programs as images have them: built, trained with everything in [`harness`], and built again
//! with the recorded profile (profile-guided optimization,
//! <https://doc.rust-lang.org/rustc/profile-guided-optimization.html>).
//!
//! Everything is kept below the target directory: unchanged code is not built again, and the same
//! programs are not trained twice.

mod toolchain;
mod training;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use harness::Floor;
use harness::program::Program;
use hub_tests::scratch::{self, Scratch};

use self::toolchain::Toolchain;
pub use self::training::train;

/// Directory below the target directory.
const DIRECTORY: &str = "trained";
/// Prefix and suffix of a profile's file name, with its content's hash between them: cargo compares
/// the flag, not the file that it names.
const PROFILE: (&str, &str) = ("seen-", ".profdata");
/// Rounds of training: so many that work at the start counts for nothing.
const ROUNDS: usize = 10;

/// Builds the programs, and returns their directory. The first time takes as long as two builds
/// with the whole program in one unit.
pub fn build() -> Result<PathBuf> {
    let tools = Toolchain::here()?;
    let root = scratch::target().join(DIRECTORY);
    fs::create_dir_all(&root)?;
    let root = root.canonicalize()?; // it gets into flags
    let raw = root.join("raw");
    let watched = tools.build(&root.join("watched"), &format!("-Cprofile-generate={}", raw.display()))?;
    let profile = match newest(&root)? {
        Some((profile, made)) if made >= built(&watched)? => profile,
        _ => learn(&tools, &root, &raw, &watched)?,
    };
    tools.build(&root.join("programs"), &format!("-Cprofile-use={}", profile.display()))
}

/// Runs the programs in `watched`, which write their records to `raw`. Replaces earlier profiles.
fn learn(tools: &Toolchain, root: &Path, raw: &Path, watched: &Path) -> Result<PathBuf> {
    drop(fs::remove_dir_all(raw)); // of earlier programs, if any
    let scratch = Scratch::create()?;
    let program = |program: Program| Ok(watched.join(program.binary()));
    train(&Floor { directory: scratch.path(), program: &program, gateway: &[] }, ROUNDS)?;
    let merged = root.join("merged");
    tools.merge(raw, &merged)?;
    for (earlier, _) in profiles(root)? {
        fs::remove_file(earlier)?;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(&merged)?);
    let (before, after) = PROFILE;
    let profile = root.join(format!("{before}{:016x}{after}", hasher.finish()));
    fs::rename(&merged, &profile)?;
    Ok(profile)
}

fn newest(root: &Path) -> Result<Option<(PathBuf, SystemTime)>> {
    Ok(profiles(root)?.into_iter().max_by_key(|(_, made)| *made))
}

fn profiles(root: &Path) -> Result<Vec<(PathBuf, SystemTime)>> {
    let (before, after) = PROFILE;
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(before) && name.ends_with(after)) {
            found.push((entry.path(), entry.metadata()?.modified()?));
        }
    }
    Ok(found)
}

/// When the last of the programs in `directory` was built.
fn built(directory: &Path) -> Result<SystemTime> {
    let mut last = SystemTime::UNIX_EPOCH;
    for program in Program::TRAINED {
        let path = directory.join(program.binary());
        let metadata = fs::metadata(&path).with_context(|| format!("cannot find {}", path.display()))?;
        last = last.max(metadata.modified()?);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    #[test]
    fn programs_built_after_they_were_last_trained_are_trained_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let start = SystemTime::now();
        let create = |name: &str, minute: u64| {
            File::create(root.join(name)).unwrap().set_modified(start + Duration::from_mins(minute)).unwrap();
        };
        assert_eq!(newest(root).unwrap(), None);
        assert!(built(root).unwrap_err().to_string().contains("cannot find"));
        for (minute, program) in Program::TRAINED.into_iter().enumerate() {
            create(program.binary(), minute as u64);
        }
        create("seen-1.profdata", 2);
        create("seen-0.profdata", 1);
        create("seen-2.profraw", 9);
        let (profile, made) = newest(root).unwrap().unwrap();
        assert_eq!(profile, root.join("seen-1.profdata"));
        assert!(made >= built(root).unwrap());
        create(Program::Gateway.binary(), 3);
        assert!(made < built(root).unwrap());
    }
}
