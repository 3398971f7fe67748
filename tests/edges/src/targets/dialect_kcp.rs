//! Any path and query with kcp's dialect on: a cluster has one path in it, reviewed as the
//! cluster's own, and with the dialect off, its paths give no caller any information.
//!
//! Input: as [`crate::spelling::Asked`].

use api::route::{Dialect, Dialects, KarmadaMode, Route, Served};

use crate::spelling::Asked;

pub const WORDS: &[&str] = &[
    "/clusters/",
    "/clusters",
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy",
    "c1",
    "a:b",
    ":",
    ".",
    "..",
    "/",
    "//",
    "*",
    "%2A",
    "%2a",
    "%2F",
    "%3A",
    "%2e",
    "\\",
    "?",
    "watch=1",
    "/api/v1/pods",
    "-",
    "A",
    ";",
];

const ON: Served = Served::Gateway(Dialects { kcp: true, karmada: KarmadaMode::Off });

pub fn check(input: &[u8]) {
    let Some(asked) = Asked::of(input) else { return };
    if let Some(route) = asked.check(ON, Dialect::Kcp) {
        assert_eq!(route.prefix, format!("/clusters/{}", route.cluster.as_str().replace('.', ":")));
        assert!(route.cluster.as_str().split('.').all(|part| part.len() <= 63));
    }
    let is_kcps = asked.path.starts_with("/clusters/");
    let on = asked.check_switch(ON, is_kcps);
    assert!(!is_kcps || on != Route::NotFound, "{on:?}");
}
