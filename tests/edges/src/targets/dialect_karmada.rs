//! Any path and query with Karmada's dialect on: a cluster has one path in it, reviewed as
//! Karmada's own, and with the dialect off, its paths give no caller any information.
//!
//! Input: as [`crate::spelling::Asked`].

use api::route::{Dialect, Dialects, KarmadaMode, Served};

use crate::spelling::Asked;

pub const WORDS: &[&str] = &[
    GROUP,
    "/apis/cluster.karmada.io/v1alpha1/clusters/",
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy",
    "/v1alpha1",
    "/clusters/",
    "/proxy",
    "proxy",
    "c1",
    ".",
    "..",
    "/",
    "//",
    "*",
    "%2A",
    "%2a",
    "%2F",
    "%2e",
    "\\",
    "?",
    "watch=1",
    "/api/v1/pods",
    "-",
    "A",
];

const GROUP: &str = "/apis/cluster.karmada.io";
const OPEN_API: &str = "/openapi/v3/apis/cluster.karmada.io/v1alpha1";
const ON: Served = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Standalone });
const BESIDE: Served = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Beside });

pub fn check(input: &[u8]) {
    let Some(asked) = Asked::of(input) else { return };
    if let Some(route) = asked.check(ON, Dialect::Karmada) {
        assert_eq!(route.prefix, format!("{GROUP}/v1alpha1/clusters/{}/proxy", route.cluster));
    }
    if let Some(route) = asked.check(BESIDE, Dialect::Karmada) {
        assert_eq!(route.prefix, format!("{GROUP}/v1alpha1/clusters/{}/proxy", route.cluster));
    }
    let is_karmadas = asked.path.strip_prefix(GROUP).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // Discovery documents list all that is served.
    let is_document = matches!(asked.path.strip_suffix('/').unwrap_or(asked.path), "/apis" | "/openapi/v3" | OPEN_API);
    if !is_document {
        asked.check_switch(ON, is_karmadas);
    }
}
