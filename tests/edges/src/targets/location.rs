//! Any redirect of a member: what is told to clients stays on the hub and below the proxy path, for
//! browsers too.
//!
//! Input: one byte (bit 0: the member has a base path), then `Location`.

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

pub fn check(input: &[u8]) {
    let Some((first, location)) = input.split_first() else { return };
    let base_path = if first & 1 == 0 { "" } else { "/base" };
    let Some(told) = gateway::edges::redirected(location, base_path) else { return };
    let (authority, path) = browser::followed(&told);
    assert_eq!(authority, "hub", "{told:?}");
    assert!(path.starts_with(&format!("{}/", browser::PREFIX)), "{told:?} leads to {path}");
}
