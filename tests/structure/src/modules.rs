//! The arrows between the modules of one crate, level by level.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
#[expect(clippy::disallowed_types, reason = "parking_lot would be the only dependency")]
use std::sync::Mutex;
use std::sync::{LazyLock, PoisonError};

use crate::arrow::Arrow;
use crate::paths::{Read, read, taken_by_root};
use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};

/// Name of the root in arrows: the code of `lib.rs` or `main.rs` itself.
pub const ROOT: &str = "the root";

/// Most times that a name is re-exported from one module to another.
const BROUGHT_AT_MOST: usize = 8;

/// Packages that were read, by their directories: most of the rules read all of them, and no test
/// changes one.
#[expect(clippy::disallowed_types, reason = "as above")]
static KNOWN: LazyLock<Mutex<BTreeMap<PathBuf, Vec<Tree>>>> = LazyLock::new(Mutex::default);

/// A library or a program: the modules that one root file declares.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Path of the root file, below the workspace's directory.
    pub root: PathBuf,
    /// The root file and those of its modules, without code for tests, from the root down.
    pub files: Vec<PathBuf>,
    /// Top-level modules, in the order of their declarations.
    pub modules: Vec<String>,
    /// In the order of the text, file by file. None leads from a module to itself.
    pub arrows: Vec<Arrow>,
    /// Arrows between the modules of one module, by its path from the root.
    pub below: BTreeMap<String, Vec<Arrow>>,
}

/// The library and the program in `package`, a directory below `workspace`.
///
/// # Panics
///
/// If a declared module has no file, or a file cannot be read.
pub fn trees(workspace: &Path, package: &Path) -> Vec<Tree> {
    // Held meanwhile: a rule that comes second waits for what the first one reads.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || {
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| package.join(root));
        roots.into_iter().filter(|root| workspace.join(root).exists()).map(|root| tree(workspace, root)).collect()
    };
    known.entry(workspace.join(package)).or_insert_with(made).clone()
}

fn tree(workspace: &Path, root: PathBuf) -> Tree {
    let mut files = Files { workspace, found: BTreeMap::new(), order: Vec::new() };
    files.walk(&root.with_file_name(""), root.clone(), &[]);
    let said = text(workspace, &root);
    let modules = files.found[&[][..]].1.modules.clone();
    let to_root = |(name, line): (String, usize)| Arrow { from: ROOT.to_owned(), to: name, file: root.clone(), line };
    let mut arrows: Vec<Arrow> = taken_by_root(&said, &modules).into_iter().map(to_root).collect();
    let mut below: BTreeMap<String, Vec<Arrow>> = BTreeMap::new();
    for module in &files.order {
        let (file, read) = &files.found[module];
        for named in &read.names {
            let Some((parent, from, to)) = files.between(module, &named.path) else { continue };
            let arrow = Arrow { from, to, file: file.clone(), line: named.line };
            match parent {
                [] => arrows.push(arrow),
                parent => below.entry(parent.join("::")).or_default().push(arrow),
            }
        }
    }
    let files = files.order.iter().map(|module| files.found[module].0.clone()).collect();
    Tree { root, files, modules, arrows, below }
}

/// The files of a tree.
struct Files<'a> {
    workspace: &'a Path,
    /// By the module's path from the root; the path of the root itself is empty.
    found: BTreeMap<Vec<String>, (PathBuf, Read)>,
    order: Vec<Vec<String>>,
}

impl Files<'_> {
    /// Reads the file of `module`; those of its modules are in `folder`.
    fn walk(&mut self, folder: &Path, file: PathBuf, module: &[String]) {
        let read = read(&text(self.workspace, &file), module);
        let children = read.modules.clone();
        self.order.push(module.to_vec());
        self.found.insert(module.to_vec(), (file, read));
        for child in children {
            let below = folder.join(&child);
            let beside = folder.join(format!("{child}.rs"));
            let file = if self.workspace.join(&beside).exists() { beside } else { below.join("mod.rs") };
            self.walk(&below, file, &[module, &[child]].concat());
        }
    }

    /// The innermost module that contains both `module` and the named item, and the child module of
    /// each in it. An item of that innermost module itself belongs to the root, or, further down,
    /// makes no arrow: a module and its children are one unit.
    fn between<'m>(&self, module: &'m [String], path: &[String]) -> Option<(&'m [String], String, String)> {
        let path = self.resolved(path);
        let common = module.iter().zip(&path).take_while(|(one, other)| one == other).count();
        let (parent, from) = (&module[..common], module.get(common)?);
        let child = path.get(common).filter(|name| self.found[parent].1.modules.contains(*name));
        let to = child.map(String::as_str).or_else(|| (parent.is_empty() && !path.is_empty()).then_some(ROOT))?;
        Some((parent, from.clone(), to.to_owned()))
    }

    /// `path`, with each re-exported name replaced by the place of its definition.
    fn resolved(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        for _ in 0..BROUGHT_AT_MOST {
            let known = (0..path.len()).rev().find_map(|at| Some((at, self.found.get(&path[..at])?)));
            let Some((at, (_, read))) = known else { break };
            let Some(place) = read.brought.get(&path[at]).filter(|place| **place != path[..=at]) else { break };
            path = place.iter().chain(&path[at + 1..]).cloned().collect();
        }
        path
    }
}

fn text(workspace: &Path, file: &Path) -> Vec<Token> {
    let said = fs::read_to_string(workspace.join(file));
    tests_out(&tokens(&said.unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()))))
}
