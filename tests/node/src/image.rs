//! Images without a registry: archives of directories, in the format of `docker save`.
//!
//! The programs' images are made by the Dockerfile's own last steps, which are run here with
//! another directory; the Dockerfile's stages give the user and entry point of each image.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::programs;

/// Image of pod sandboxes, and of workloads that do nothing.
pub const PAUSE: &str = "localhost/pause:lab";
/// The version of the charts, which images have unless another tag is set.
pub const TAG: &str = "0.1.0";
/// Another image of the same programs, to upgrade to.
pub const NEXT: &str = "0.1.1";
/// An image whose programs end as soon as they are started.
pub const BROKEN: &str = "0.1.2";
/// A flag that no program knows.
const WRONG: &str = "--no-such-flag";
/// Environment variable with the archives of all programs, as `PATH` has directories, for another
/// testbed's process.
pub const MADE: &str = "NODE_TESTS_IMAGES";
/// The archives that [`programs`] has returned first, joined as for [`MADE`].
static ARCHIVES: OnceLock<String> = OnceLock::new();
const DOCKERFILE: &str = include_str!("../../../Dockerfile");
/// Directory in the Dockerfile with the content of the images.
const PLACE: &str = "/image";
/// Directory in the Dockerfile with the built programs.
const BUILT: &str = "/programs";
/// Start of the step that copies the programs into [`PLACE`], and of the step that completes it.
const STEPS: [&str; 2] = ["    && for program in ", "RUN for program in "];

/// For example `localhost/tunnel-agent`: a name without a host would be looked for in a registry.
pub fn repository(program: &str) -> String {
    format!("localhost/{program}")
}

/// The images of all programs: their archives, each of which has all tags of one program. Made from
/// this executable, unless [`MADE`] names them.
pub fn programs(directory: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let archives: Vec<PathBuf> = match std::env::var_os(MADE) {
        Some(made) => std::env::split_paths(&made).collect(),
        None => make(directory)?,
    };
    ensure!(archives.len() == programs::IMAGES.len(), "not an image of each program: {archives:?}");
    let joined = std::env::join_paths(&archives)?;
    ARCHIVES.get_or_init(|| joined.to_string_lossy().into_owned());
    Ok(programs::IMAGES.into_iter().zip(archives).collect())
}

/// For [`MADE`]: the archives that [`programs`] has returned.
pub fn made() -> Option<&'static str> {
    ARCHIVES.get().map(String::as_str)
}

fn make(directory: &Path) -> Result<Vec<PathBuf>> {
    let (place, built) = (directory.join("image"), directory.join("programs"));
    std::fs::create_dir_all(&built)?;
    for program in programs::IMAGES {
        std::os::unix::fs::symlink(std::env::current_exe()?, built.join(program))?;
    }
    for start in STEPS {
        let step = step(start)?.replace(PLACE, &place.display().to_string());
        shell(&step.replace(BUILT, &built.display().to_string()))?;
    }
    let archive = |program| {
        let tagged = |tag| Ok((format!("{}:{tag}", repository(program)), config(program, tag)?));
        let images = [TAG, NEXT, BROKEN].map(tagged).into_iter().collect::<Result<Vec<_>>>()?;
        archive(directory, &images, &place.join(program))
    };
    programs::IMAGES.into_iter().map(archive).collect()
}

/// Makes the image of the program that does nothing.
pub fn pause(directory: &Path, program: &Path) -> Result<PathBuf> {
    let root = directory.join("pause");
    std::fs::create_dir_all(&root)?;
    std::fs::copy(program, root.join("pause"))?;
    archive(directory, &[(PAUSE.to_owned(), json!({"Entrypoint": ["/pause"], "User": "65535:65535"}))], &root)
}

/// The image's configuration.
fn config(program: &str, tag: &str) -> Result<Value> {
    let mut config = stage(program)?;
    config["Labels"] = json!({"org.opencontainers.image.version": tag}); // or it is the same image
    if tag == BROKEN {
        config["Entrypoint"].as_array_mut().context("no entry point")?.push(WRONG.into());
    }
    Ok(config)
}

/// The shell part of one of [`STEPS`], for the programs in [`programs::IMAGES`].
fn step(start: &str) -> Result<String> {
    let (_, rest) = DOCKERFILE.split_once(&format!("\n{start}")).with_context(|| format!("no step {start:?}"))?;
    let end = ["\nRUN ", "\n\n"].iter().filter_map(|end| rest.find(end)).min().context("nothing follows")?;
    let step = &rest[..end];
    let (all, step) = step.split_once("; do").context("no loop over programs")?;
    let missing = programs::IMAGES.iter().find(|program| !all.split(' ').any(|one| one == **program));
    ensure!(missing.is_none(), "the Dockerfile makes no image of {missing:?}");
    Ok(format!("for program in {}; do{step}", programs::IMAGES.join(" ")))
}

/// The image's configuration from the stage named `program`.
fn stage(program: &str) -> Result<Value> {
    let (_, rest) = DOCKERFILE.split_once(&format!("\nFROM scratch AS {program}\n")).context("no such stage")?;
    let lines = rest.lines().take_while(|line| !line.is_empty());
    let mut image = json!({});
    for line in lines {
        match line.split_once(' ').context("a word alone")? {
            ("COPY", rest) => ensure!(rest == format!("--from=build {PLACE}/{program} /"), "{line}"),
            ("USER", user) => image["User"] = user.into(),
            ("ENTRYPOINT", words) => image["Entrypoint"] = serde_json::from_str(words)?,
            _ => anyhow::bail!("{program}: not known here: {line}"),
        }
    }
    Ok(image)
}

fn shell(script: &str) -> Result<()> {
    let output = Command::new("sh").args(["-ec", script]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script}: {}: {said}", output.status);
    Ok(())
}

/// Writes images, by name and configuration, to one archive; each has a single layer with
/// everything in `root`.
fn archive(directory: &Path, images: &[(String, Value)], root: &Path) -> Result<PathBuf> {
    let name = images.first().map_or("none", |(name, _)| name);
    let place = directory.join(name.replace(['/', ':'], "_"));
    std::fs::create_dir_all(&place)?;
    tar(&place.join("layer.tar"), root, &["."])?;
    let layer = sha256(&place.join("layer.tar"))?;
    let (mut manifests, mut files) = (Vec::new(), vec!["layer.tar".to_owned(), "manifest.json".to_owned()]);
    for (number, (name, config)) in images.iter().enumerate() {
        let config = json!({"architecture": architecture(), "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
            "history": [{"created_by": "tests"}]});
        let file = format!("config-{number}.json");
        std::fs::write(place.join(&file), config.to_string())?;
        manifests.push(json!({"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}));
        files.push(file);
    }
    std::fs::write(place.join("manifest.json"), Value::from(manifests).to_string())?;
    let file = place.with_extension("tar");
    tar(&file, &place, &files)?;
    std::fs::remove_dir_all(&place)?;
    Ok(file)
}

fn tar(file: &Path, root: &Path, names: &[impl AsRef<OsStr>]) -> Result<()> {
    let output = Command::new("tar")
        .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mtime=@0"])
        .args([Path::new("--file"), file, Path::new("--directory"), root])
        .args(names)
        .output()?;
    ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn architecture() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" }
}

fn sha256(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file)?;
    Ok(digest(&SHA256, &bytes).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dockerfile_says_how_images_are_made() {
        let [install, complete] = STEPS.map(|start| step(start).unwrap());
        assert!(install.starts_with("for program in cluster-gateway ") && install.ends_with("    done"), "{install}");
        assert!(install.contains("install -D --strip \"/programs/$program\""), "{install}");
        assert!(complete.starts_with("for program in cluster-gateway ") && complete.ends_with("/patch"), "{complete}");
        assert!(complete.contains("chroot \"$image\""), "{complete}");
        let expected = json!({"User": "65532:65532", "Entrypoint": ["/apiserver"]});
        assert_eq!(stage("cluster-gateway").unwrap(), expected);
        for program in ["tunnel-agent", "cluster-gateway-controllers"] {
            let expected = json!({"User": "65532:65532", "Entrypoint": [format!("/{program}")]});
            assert_eq!(stage(program).unwrap(), expected);
        }
        assert_ne!(config("tunnel-agent", TAG).unwrap(), config("tunnel-agent", NEXT).unwrap());
        assert_eq!(config("tunnel-agent", BROKEN).unwrap()["Entrypoint"], json!(["/tunnel-agent", WRONG]));
    }
}
