//! The arrows between the top-level modules of one crate.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arrow::Arrow;
use crate::paths::{Read, brought, read, taken_by_root};
use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};

/// How arrows name the root: what `lib.rs` or `main.rs` itself says.
pub const ROOT: &str = "the root";

/// A library or a program: what one root file declares.
#[derive(Debug)]
pub struct Tree {
    /// Of the root file, below the workspace's directory.
    pub root: PathBuf,
    /// Top-level modules, in the order they are declared.
    pub modules: Vec<String>,
    /// In the order they are written, file by file. None leads from a module to itself.
    pub arrows: Vec<Arrow>,
}

/// The library and the program in `package`, a directory below `workspace`.
///
/// # Panics
///
/// A declared module has no file, or a file cannot be read.
pub fn trees(workspace: &Path, package: &Path) -> Vec<Tree> {
    let roots = ["src/lib.rs", "src/main.rs"].map(|root| package.join(root));
    roots.into_iter().filter(|root| workspace.join(root).exists()).map(|root| tree(workspace, root)).collect()
}

fn tree(workspace: &Path, root: PathBuf) -> Tree {
    let said = text(workspace, &root);
    let modules = read(&said, 0).modules;
    let mut files = Files { workspace, found: Vec::new() };
    let folder = root.with_file_name("");
    for module in &modules {
        files.walk(&folder, module, 1, module);
    }
    let brought = brought(&said);
    let mut arrows: Vec<Arrow> = Vec::new();
    let arrow = |from: &str, to: &str, file: &Path, line| Arrow {
        from: from.to_owned(),
        to: to.to_owned(),
        file: file.to_owned(),
        line,
    };
    arrows.extend(taken_by_root(&said, &modules).iter().map(|(name, line)| arrow(ROOT, name, &root, *line)));
    for (top, file, read) in &files.found {
        for (name, line) in &read.names {
            let to = if modules.contains(name) { name } else { brought.get(name).map_or(ROOT, String::as_str) };
            arrows.push(arrow(top, to, file, *line));
        }
    }
    arrows.retain(|arrow| arrow.from != arrow.to);
    Tree { root, modules, arrows }
}

struct Files<'a> {
    workspace: &'a Path,
    /// Top-level module, file, what it says.
    found: Vec<(String, PathBuf, Read)>,
}

impl Files<'_> {
    fn walk(&mut self, folder: &Path, name: &str, depth: usize, top: &str) {
        let beside = folder.join(format!("{name}.rs"));
        let file = if self.workspace.join(&beside).exists() { beside } else { folder.join(name).join("mod.rs") };
        let read = read(&text(self.workspace, &file), depth);
        let children = read.modules.clone();
        self.found.push((top.to_owned(), file, read));
        for child in children {
            self.walk(&folder.join(name), &child, depth + 1, top);
        }
    }
}

fn text(workspace: &Path, file: &Path) -> Vec<Token> {
    let said = fs::read_to_string(workspace.join(file));
    tests_out(&tokens(&said.unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()))))
}
