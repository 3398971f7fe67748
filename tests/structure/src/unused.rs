//! Dependencies that no source names, and that are built and reviewed for nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::{Dependency, Package};
use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};
use crate::widths::files;

/// External packages whose libraries have another name.
const LIBRARIES: [(&str, &str); 1] = [("rustls-webpki", "webpki")];

/// Where a dependency is used.
#[derive(Debug, PartialEq, Eq)]
pub enum Use {
    Product,
    Tests,
    None,
}

/// The libraries that the sources of one package name.
#[derive(Debug, Default)]
pub struct Named {
    product: BTreeSet<String>,
    tests: BTreeSet<String>,
}

// === impl Named ===

impl Named {
    /// The libraries that `package` names, without packages below its directory; `product` has the
    /// files that are not for tests.
    ///
    /// # Panics
    ///
    /// If a source cannot be read.
    pub fn read(workspace: &Path, package: &Package, all: &[Package], product: &[PathBuf]) -> Self {
        let is_below = |one: &&Package| one.name != package.name && one.directory.starts_with(&package.directory);
        let nested: Vec<_> = all.iter().filter(is_below).collect();
        let root = workspace.join(&package.directory);
        let mut named = Self::default();
        for file in files(&root, &["rs"]) {
            let below = package.directory.join(file.strip_prefix(&root).expect("a file of the package"));
            if !nested.iter().any(|one| below.starts_with(&one.directory)) {
                named.add(&fs::read_to_string(&file).expect("text"), product.contains(&below));
            }
        }
        named
    }

    fn add(&mut self, source: &str, is_product: bool) {
        let tokens = tokens(source);
        if is_product {
            self.product.extend(starts(&tests_out(&tokens)));
        }
        self.tests.extend(starts(&tokens));
    }

    /// Where `library` is named.
    pub fn uses(&self, library: &str) -> Use {
        match (self.product.contains(library), self.tests.contains(library)) {
            (true, _) => Use::Product,
            (false, true) => Use::Tests,
            (false, false) => Use::None,
        }
    }
}

/// How sources name the library of `dependency`.
pub fn library(dependency: &Dependency, all: &[Package]) -> String {
    let ours = all.iter().find(|package| package.name == dependency.name).map(|package| &*package.library);
    let other = LIBRARIES.iter().find(|(name, _)| *name == dependency.name).map(|(_, library)| *library);
    ours.or(other).map_or_else(|| dependency.name.replace('-', "_"), str::to_owned)
}

/// The first names of paths in `tokens`, and names that a declaration imports as a whole.
fn starts(tokens: &[Token]) -> BTreeSet<String> {
    let text = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map_or("", |token| token.text.as_str());
    let is_start = |at: &usize| {
        let (before, behind) = (text(at.checked_sub(1)), text(Some(at + 1)));
        let is_path = behind == ":" && text(Some(at + 2)) == ":" && before != ":";
        is_path || ["use", "crate"].contains(&before)
    };
    (0..tokens.len()).filter(is_start).map(|at| tokens[at].text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_at_the_start_of_a_path_only() {
        for used in ["use a;", "use a as b;", "use a::b;", "a::b!()", "#[a::main]", "extern crate a;", "f::<a::B>()"] {
            assert!(starts(&tokens(used)).contains("a"), "{used}");
        }
        for not in ["let a = 1;", "use b::a;", "b::a::c()", "// a::b", "\"a::b\"", "f(a: u8)"] {
            assert!(!starts(&tokens(not)).contains("a"), "{not}");
        }
    }

    #[test]
    fn what_only_tests_name_is_told_apart() {
        let mut named = Named::default();
        named.add("b::x();\n#[cfg(test)]\nmod tests { use c::y; }\n", true);
        named.add("d::z()", false);
        let found = ["b", "c", "d", "e"].map(|library| named.uses(library));
        assert_eq!(found, [Use::Product, Use::Tests, Use::Tests, Use::None]);
    }
}
