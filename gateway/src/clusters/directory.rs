//! Clusters from Secret manifests in a directory, with the same contract as on a hub: one object
//! per YAML document.

mod manifest;

use std::fs;
use std::path::{Path, PathBuf};

use api::secret::CREDENTIAL_TYPE_LABEL;
use net::follow::Look;
use net::words;

use self::manifest::{LARGEST, Manifest, place};
use super::Registry;
/// Most files that are read.
const MOST_FILES: usize = 10_000;

/// The current state of the manifests in `directory` (`*.yaml`, `*.yml`, `*.json`, no dot files),
/// ordered by name.
pub fn look(directory: &Path) -> std::io::Result<Vec<Look>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| is_manifest(path))
        .collect();
    // Sorted first, so that the choice of files within the limit does not depend on the directory's
    // order.
    paths.sort();
    if paths.len() > MOST_FILES {
        tracing::error!(directory = %directory.display(), files = paths.len(), "only the first {MOST_FILES} manifests are read");
        paths.truncate(MOST_FILES);
    }
    Ok(paths.iter().map(|path| Look::at(path)).collect())
}

fn is_manifest(path: &Path) -> bool {
    let hidden = path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
    let known = path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|one| extension == *one));
    known && !hidden
}

/// Registers the clusters of one file and returns their names. Logs and skips a document that is no
/// cluster Secret.
///
/// # Errors
/// The file cannot be read or parsed, with the position. Then nothing is changed.
pub fn apply(registry: &mut Registry, path: &Path, generation: u64) -> Result<Vec<String>, String> {
    let documents = read(path)?;
    let mut names = Vec::new();
    for manifest in documents {
        if manifest.kind != "Secret" || !manifest.metadata.labels.contains_key(CREDENTIAL_TYPE_LABEL) {
            tracing::warn!(
                file = %path.display(),
                name = manifest.metadata.name,
                "document skipped: not a Secret with label {CREDENTIAL_TYPE_LABEL}"
            );
            continue;
        }
        match manifest.bytes() {
            Ok(data) => registry.apply(&manifest.view(&data, &generation.to_string())),
            Err(key) => registry.reject(&manifest.metadata.name, &format!("data key {key:?} is not base64")),
        }
        names.push(manifest.metadata.name);
    }
    Ok(names)
}

fn read(path: &Path) -> Result<Vec<Manifest>, String> {
    let len = fs::metadata(path).map_err(|error| words::io(&error))?.len();
    if len > LARGEST {
        return Err(format!("larger than {LARGEST} bytes"));
    }
    let text = fs::read_to_string(path).map_err(|error| words::io(&error))?;
    if text.trim().is_empty() {
        // An editor or a copy may have truncated the file, and not written it yet.
        return Err("empty: remove the file to remove its clusters".into());
    }
    serde_saphyr::from_multiple(&text).map_err(|error| format!("the manifest is {}", place(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Result<Vec<Manifest>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn string_data_wins_over_data_and_several_documents_are_several_clusters() {
        let text = "kind: Secret\nmetadata: {name: a}\ndata: {token: b2xk}\nstringData: {token: new}\n---\nkind: Secret\nmetadata: {name: b}\n";
        let documents = documents(text).unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].bytes().unwrap()["token"], b"new");
    }

    #[test]
    fn a_broken_manifest_is_located_but_not_quoted() {
        let error = documents("kind: Secret\nmetadata: {name: a}\ndata: [hunter2]\n").err().unwrap();
        assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    }
}
