//! What strangers, callers, members, agents, plugins and Secrets may say, and what must hold
//! whatever it is.
//!
//! Each target is a function of any bytes: it never panics because of them, and asserts what a user
//! relies on. `fuzz` has libFuzzer look for inputs; [`generated`] does so on the pinned compiler,
//! with so many cases and no clock.

pub mod generated;
mod targets;

use self::targets::{accept, access, destination, list_options, registration, route, secret};

/// One parser or state machine.
#[derive(Debug)]
pub struct Target {
    /// Of its corpus too: `corpus/<name>`.
    pub name: &'static str,
    /// Panics if what must hold does not.
    pub check: fn(&[u8]),
    /// What inputs are made of beside bytes.
    pub words: &'static [&'static str],
    /// Inputs made in the tests: some seconds' worth in an unoptimized build at most.
    pub cases: usize,
}

pub const TARGETS: &[Target] = &[
    Target { name: "accept", check: accept::check, words: accept::WORDS, cases: 3_000 },
    Target { name: "access", check: access::check, words: access::WORDS, cases: 30_000 },
    Target { name: "destination", check: destination::check, words: destination::WORDS, cases: 20_000 },
    Target { name: "list_options", check: list_options::check, words: list_options::WORDS, cases: 10_000 },
    Target { name: "registration", check: registration::check, words: registration::WORDS, cases: 3_000 },
    Target { name: "route", check: route::check, words: route::WORDS, cases: 20_000 },
    Target { name: "secret", check: secret::check, words: secret::WORDS, cases: 5_000 },
];

/// Checks `input` as the target `name` does.
///
/// # Panics
///
/// There is no such target, or what must hold does not.
pub fn check(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.check)(input);
}
