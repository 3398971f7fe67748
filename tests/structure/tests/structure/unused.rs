//! Every dependency is used, and one that only tests use is a dependency of tests.

use structure_tests::manifests::packages;
use structure_tests::unused::{Named, Use, library};
use structure_tests::{product, workspace};

#[test]
fn every_dependency_is_used() {
    let root = workspace();
    let (packages, products) = (packages(&root), product::files(&root));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for package in &packages {
        let named = Named::read(&root, package, &packages, &products);
        let is_product = products.iter().any(|file| file.starts_with(&package.directory));
        for dependency in &package.dependencies {
            seen += 1;
            let place = format!("{}/Cargo.toml:{}", package.directory.display(), dependency.line);
            match named.uses(&library(dependency, &packages)) {
                Use::None => wrong.push(format!("{place}: no source names `{}`", dependency.name)),
                Use::Tests if is_product && !dependency.is_for_tests => {
                    wrong.push(format!("{place}: only tests use `{}`: a dev-dependency", dependency.name));
                }
                Use::Product | Use::Tests => {}
            }
        }
    }
    assert!(seen > 300, "only {seen} dependencies");
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
}
