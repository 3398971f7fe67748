//! Keeps `docs/http.md` honest: every setting of the HTTP libraries is in it, those of versions to
//! come too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file of a builder in its crate, and its name in the document.
const BUILDERS: &[(&str, &str, &str)] = &[
    ("h2", "src/client.rs", "h2::client::Builder"),
    ("h2", "src/server.rs", "h2::server::Builder"),
    ("hyper", "src/server/conn/http1.rs", "hyper::server::conn::http1::Builder"),
    ("hyper", "src/client/conn/http1.rs", "hyper::client::conn::http1::Builder"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of the version of `name` in the lock file.
fn sources(name: &str) -> PathBuf {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let package = format!("name = \"{name}\"\nversion = \"");
    let (_, rest) = lock.split_once(&package).expect("a dependency");
    let directory = format!("{name}-{}", rest.split('"').next().expect("a version"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).expect("a home");
    let registries = std::fs::read_dir(home.join("registry/src")).expect("a registry");
    let mut found = registries.map(|registry| registry.expect("readable").path().join(&directory));
    found.find(|path| path.is_dir()).expect("the sources that were compiled")
}

/// Methods of the builder in `source` that change it.
fn settings(source: &str) -> BTreeSet<&str> {
    let start = source.find("\nimpl Builder {").expect("a builder");
    let body = &source[start + 1..];
    let body = &body[..body.find("\n}").expect("its end")];
    let methods = body.split("pub fn ").skip(1);
    let settings = methods.filter(|method| method.split('{').next().is_some_and(|head| head.contains("&mut self")));
    settings.filter_map(|method| method.split(['(', '<']).next()).collect()
}

#[test]
fn every_setting_of_the_http_libraries_is_decided() {
    let document = std::fs::read_to_string(root().join("docs/http.md")).expect("the document");
    for (package, file, name) in BUILDERS {
        let source = std::fs::read_to_string(sources(package).join(file)).expect("the source");
        let section = document.split("\n## ").find(|section| section.starts_with(&format!("`{name}`")));
        let rows = section.unwrap_or_else(|| panic!("no section {name}")).lines();
        let decided: BTreeSet<_> = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        let settings = settings(&source);
        assert!(settings.len() > 5, "{name}: {settings:?}");
        assert_eq!(decided, settings, "{name}");
    }
}
