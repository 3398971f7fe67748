//! Dependencies that no source names: they are built, and reviewed, for nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::{Dependency, Package};
use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};
use crate::widths::files;

/// Packages of others whose libraries are not called after them.
const LIBRARIES: [(&str, &str); 1] = [("rustls-webpki", "webpki")];

/// How far a dependency is used.
#[derive(Debug, PartialEq, Eq)]
pub enum Use {
    Product,
    Tests,
    None,
}

/// The sources of one package: file by file what it says, and what it says without its tests.
#[derive(Debug)]
pub struct Sources(Vec<(PathBuf, Vec<Token>)>);

// === impl Sources ===

impl Sources {
    /// Of `package`, without those of packages below its directory.
    ///
    /// # Panics
    ///
    /// A source cannot be read.
    pub fn read(workspace: &Path, package: &Package, all: &[Package]) -> Self {
        let nested: Vec<_> = all.iter().filter(|one| is_below(&one.directory, &package.directory)).collect();
        let root = workspace.join(&package.directory);
        let files = files(&root, &["rs"]).into_iter().filter_map(|file| {
            let below = package.directory.join(file.strip_prefix(&root).expect("a file of the package"));
            let is_nested = nested.iter().any(|one| below.starts_with(&one.directory));
            (!is_nested).then(|| (below, tokens(&fs::read_to_string(&file).expect("text"))))
        });
        Self(files.collect())
    }

    /// Where `library` is named; `product` has the files that are not for tests.
    pub fn uses(&self, library: &str, product: &[PathBuf]) -> Use {
        let is_product =
            |(file, tokens): &(PathBuf, Vec<Token>)| product.contains(file) && names(&tests_out(tokens), library);
        if self.0.iter().any(is_product) {
            Use::Product
        } else if self.0.iter().any(|(_, tokens)| names(tokens, library)) {
            Use::Tests
        } else {
            Use::None
        }
    }
}

/// How sources name the library of `dependency`.
pub fn library(dependency: &Dependency, all: &[Package]) -> String {
    let of_us: BTreeMap<&str, &str> = all.iter().map(|one| (one.name.as_str(), one.library.as_str())).collect();
    let other = LIBRARIES.iter().find(|(name, _)| *name == dependency.name).map(|(_, library)| *library);
    let known = of_us.get(dependency.name.as_str()).copied().or(other);
    known.map_or_else(|| dependency.name.replace('-', "_"), str::to_owned)
}

fn is_below(directory: &Path, above: &Path) -> bool {
    directory != above && directory.starts_with(above)
}

/// Whether a path of `tokens` starts with `library`, or a declaration takes it as a whole.
fn names(tokens: &[Token], library: &str) -> bool {
    let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text.as_str());
    (0..tokens.len()).any(|at| {
        let (before, behind) = (text(at.checked_sub(1)), text(Some(at + 1)));
        let is_path = behind == ":" && text(Some(at + 2)) == ":" && before != ":";
        tokens[at].text == library && (is_path || ["use", "crate"].contains(&before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_at_the_start_of_a_path_only() {
        for used in ["use a;", "use a as b;", "use a::b;", "a::b!()", "#[a::main]", "extern crate a;", "f::<a::B>()"] {
            assert!(names(&tokens(used), "a"), "{used}");
        }
        for not in ["let a = 1;", "use b::a;", "b::a::c()", "// a::b", "\"a::b\"", "f(a: u8)"] {
            assert!(!names(&tokens(not), "a"), "{not}");
        }
    }

    #[test]
    fn what_only_tests_name_is_told_apart() {
        let file = |name: &str, text: &str| (PathBuf::from(name), tokens(text));
        let tested = "b::x();\n#[cfg(test)]\nmod tests { use c::y; }\n";
        let sources = Sources(vec![file("src/lib.rs", tested), file("tests/t.rs", "d::z()")]);
        let product = [PathBuf::from("src/lib.rs")];
        let found = ["b", "c", "d", "e"].map(|library| sources.uses(library, &product));
        assert_eq!(found, [Use::Product, Use::Tests, Use::Tests, Use::None]);
    }
}
