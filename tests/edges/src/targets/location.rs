//! Any redirect of a member: the `Location` that clients get stays on the hub and below the proxy
//! path, for browsers too.
//!
//! Input: one byte (bit 0: the member has a base path; the others choose the dialect of the
//! request), then `Location`.

mod browser;

pub const WORDS: &[&str] = &[
    "/",
    "//",
    "\\",
    ".",
    "..",
    "%2e",
    "%2E",
    "\t",
    " ",
    "?",
    "#",
    "@",
    ":",
    "https://member.example:6443",
    "https:",
    "HTTPS://Member.example:6443",
    "evil",
    "a",
    "/base",
    "%09",
    "%2f",
    "%5c",
    "/../",
    "/..",
    "\n",
    "http:",
    "[::1]",
];

/// The paths of a proxied member.
const PREFIXES: [&str; 4] =
    ["/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy", "/clusters/c1", "/clusters/root:c1", "/c1"];

pub fn check(input: &[u8]) {
    let Some((first, location)) = input.split_first() else { return };
    let base_path = if first & 1 == 0 { "" } else { "/base" };
    let prefix = PREFIXES[usize::from(first >> 1) % PREFIXES.len()];
    let Some(told) = gateway::edges::redirected(prefix, location, base_path) else { return };
    let (authority, path) = browser::followed(&told, prefix);
    assert_eq!(authority, "hub", "{told:?}");
    assert!(path.starts_with(&format!("{prefix}/")), "{told:?} leads to {path}");
}
