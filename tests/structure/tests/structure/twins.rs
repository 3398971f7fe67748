//! What is written twice is one machine, or has a reason.

use std::fs;

use structure_tests::product::files;
use structure_tests::twins::{RUN, lines, twins};
use structure_tests::workspace;

/// Files with equal lines, and why they stay (`docs/architecture.md#mechanisms`).
const EXCEPTIONS: [(&str, &str, &str); 15] = [
    ("controllers/src/parts/manifestworks.rs", "controllers/src/parts/manifestworks/keeping.rs", "arguments"),
    ("controllers/src/parts/manifestworks/member.rs", "controllers/src/parts/manifestworks/member.rs", "arguments"),
    ("controllers/src/parts/manifestworks/removal.rs", "controllers/src/parts/manifestworks/removal.rs", "arguments"),
    ("controllers/src/raw/meta.rs", "controllers/src/raw/meta.rs", "two wrappers pass on kube's Resource"),
    (
        "controllers/src/sources/referring.rs",
        "crates/api/src/karmada_cluster/spec.rs",
        "fields of Karmada's Cluster, listed for two purposes",
    ),
    ("crates/net/src/tls/verifier.rs", "crates/net/src/tls/verifier.rs", "two methods of rustls' trait"),
    ("crates/tunnel/src/bridge/inward.rs", "crates/tunnel/src/bridge/inward.rs", "arguments of a poll"),
    ("crates/tunnel/src/bridge/outward.rs", "crates/tunnel/src/bridge/outward.rs", "arguments of a poll"),
    ("crates/tunnel/src/settings.rs", "crates/tunnel/src/settings.rs", "h2's builders share no trait"),
    ("crates/tunnel/src/splice.rs", "crates/tunnel/src/splice.rs", "arguments of a poll"),
    ("gateway/src/exchange/impersonation.rs", "gateway/src/exchange/impersonation.rs", "a set, one character a line"),
    ("gateway/src/resources/clusters.rs", "gateway/src/resources/virtual_clusters.rs", "arguments"),
    ("gateway/src/resources/memory.rs", "gateway/src/resources/memory.rs", "arguments"),
    ("gateway/src/resources/virtual_tracker.rs", "gateway/src/resources/virtual_tracker.rs", "arguments"),
    ("tunnel-agent/src/args.rs", "tunnel-server/src/args.rs", "flags of the same form"),
];

#[test]
fn nothing_is_written_twice_without_a_reason() {
    let root = workspace();
    let mut files = files(&root);
    files.sort();
    files.dedup();
    assert!(files.len() > 500, "only {} files", files.len());
    let sources: Vec<_> = files.iter().map(|file| lines(&fs::read_to_string(root.join(file)).expect("text"))).collect();
    let (mut wrong, mut needed) = (Vec::new(), Vec::new());
    for twin in twins(&sources) {
        let [one, other] = [twin.one, twin.other].map(|(file, line)| (files[file].display().to_string(), line));
        let is_it = |(left, right, _): &&(&str, &str, &str)| {
            [(&*one.0, &*other.0), (&*other.0, &*one.0)].contains(&(*left, *right))
        };
        match EXCEPTIONS.iter().find(is_it) {
            Some(exception) => needed.push(exception),
            None => wrong.push(format!("{}:{} = {}:{}, {} lines", one.0, one.1, other.0, other.1, twin.lines)),
        }
    }
    assert!(wrong.is_empty(), "{RUN} equal lines or more: merge them\n\n{}\n", wrong.join("\n"));
    let is_there = |file: &str| root.join(file).exists();
    let idle = EXCEPTIONS.iter().filter(|exception| is_there(exception.0) && !needed.contains(exception));
    let idle: Vec<_> = idle.collect();
    assert!(idle.is_empty(), "exceptions that nothing needs: {idle:?}");
}
