//! What programs read of a hub has a bound. No watch begins with kube's own pages of 500 objects:
//! each object may have a mebibyte and a half, and no program reads more than 128 MiB of an answer.

use std::fs;

use structure_tests::{product, workspace};

const BEGINNING: &str = "Config::default()";
/// The file whose watch is for a single object by name.
const ONE: &str = "crates/auth/src/config_map.rs";

#[test]
fn every_watch_names_its_page() {
    let root = workspace();
    let (mut wrong, mut seen) = (Vec::new(), Vec::new());
    for file in product::files(&root) {
        let text = fs::read_to_string(root.join(&file)).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if !code.contains("watcher") {
            continue;
        }
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        for (at, line) in code.lines().enumerate().filter(|(_, line)| line.contains(BEGINNING)) {
            seen.push(name.clone());
            if !line.contains(".page_size(") && name != ONE {
                wrong.push(format!("{name}:{}: begin with `hub::paged()`", at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
    assert_eq!(seen.len(), 3, "links, hub and auth alone begin otherwise: {seen:?}");
}

/// What kube reads of metadata has no bound, and a user with few rights may fill it with labels.
#[test]
fn the_controllers_read_metadata_with_a_bound() {
    const UNBOUNDED: [&str; 6] = [
        "PartialObjectMeta",
        ".get_metadata",
        ".list_metadata(",
        ".patch_metadata(",
        ".watch_metadata(",
        "metadata_watcher",
    ];
    // The requests that are sent by what reads with a bound.
    const OWN: &str = "controllers/src/raw/meta.rs";
    let root = workspace();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in product::files(&root) {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        if !name.starts_with("controllers/") || name == OWN {
            continue;
        }
        seen += 1;
        let text = fs::read_to_string(root.join(&file)).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate() {
            if let Some(word) = UNBOUNDED.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{name}:{}: {word}: read `raw::Meta`, or by `raw::meta`", at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
    assert!(seen > 50, "{seen} files");
}
