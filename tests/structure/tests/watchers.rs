//! No watch starts with kube's default pages of 500 objects. Each object may have a mebibyte and a
//! half, and no program reads more than 128 MiB of an answer.

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
