//! Every block of commands for readers is run by a test, or has a reason why not.

use std::fs;
use std::path::{Path, PathBuf};

use structure_tests::blocks::{Block, Mark, blocks, named, unrun};
use structure_tests::widths::files;
use structure_tests::workspace;

/// Pages that readers follow.
fn pages(root: &Path) -> Vec<PathBuf> {
    let is_one = |page: &Path| {
        let page = page.strip_prefix(root).unwrap_or(page);
        page.components().count() == 1 || page.starts_with("docs") || page.starts_with("charts")
    };
    files(root, &["md"]).into_iter().filter(|page| is_one(page)).collect()
}

fn wrong(root: &Path, page: &Path, block: &Block) -> Option<String> {
    let what = match block.mark() {
        Err(what) => Some(what),
        Ok(Mark::NotRun { reason }) => {
            named(reason).into_iter().find(|name| !root.join(name).exists()).map(|name| format!("there is no {name}"))
        }
        Ok(Mark::RunBy { file, function }) => match fs::read_to_string(root.join(file)) {
            Err(error) => Some(format!("{file}: {error}")),
            Ok(source) => {
                let page = page.strip_prefix(root).unwrap_or(page).to_string_lossy();
                unrun(&source, function, &page, block).map(|what| format!("{file}: {what}"))
            }
        },
    }?;
    Some(format!("{}:{}: {what}", page.strip_prefix(root).unwrap_or(page).display(), block.line))
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let root = workspace();
    let mut wrongs = Vec::new();
    let mut run = 0;
    for page in pages(&root) {
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for block in blocks(&text) {
            run += usize::from(matches!(block.mark(), Ok(Mark::RunBy { .. })));
            wrongs.extend(wrong(&root, &page, &block));
        }
    }
    assert!(wrongs.is_empty(), "\n\n{}\n", wrongs.join("\n"));
    assert!(run > 25, "of all blocks, tests run {run}");
}
