//! The input that strangers, callers, members, agents, plugins and Secrets may send, and what must
//! hold for any of it.
//!
//! Each target is a function of any bytes: it never panics because of them, and asserts what a user
//! relies on. `fuzz` has libFuzzer look for inputs; [`generated`] does so on the pinned compiler,
//! for a while, and has other inputs in each run.

pub mod generated;
mod repeated;
mod sources;
mod spelling;
mod targets;

/// A parser or state machine under test.
#[derive(Debug)]
pub struct Target {
    /// Name, of its corpus too: `corpus/<name>`.
    pub name: &'static str,
    /// Panics if a condition does not hold.
    pub check: fn(&[u8]),
    /// Words from which inputs are made, besides bytes.
    pub words: &'static [&'static str],
    /// Most inputs made in the tests.
    pub cases: usize,
}

macro_rules! target {
    ($name:ident, $cases:literal) => {
        Target { name: stringify!($name), check: targets::$name::check, words: targets::$name::WORDS, cases: $cases }
    };
}

pub const TARGETS: &[Target] = &[
    target!(accept, 10_000),
    target!(access, 100_000),
    target!(audit_uri, 50_000),
    target!(cel, 20_000),
    target!(certificate, 20_000),
    target!(cgroup, 5_000),
    target!(claims, 20_000),
    target!(cluster_api, 10_000),
    target!(cluster_profile, 10_000),
    target!(connect_head, 10_000),
    target!(csr, 20_000),
    target!(destination, 50_000),
    target!(dialect_karmada, 50_000),
    target!(dialect_kcp, 50_000),
    target!(dialect_ocm, 50_000),
    target!(exec_output, 20_000),
    target!(exec_words, 10_000),
    target!(front_proxy, 5_000),
    target!(header_block, 20_000),
    target!(health, 20_000),
    target!(identity_rules, 5_000),
    target!(impersonable, 10_000),
    target!(inbound, 5_000),
    target!(jq, 30_000),
    target!(jsonpath, 30_000),
    target!(karmada, 10_000),
    target!(karmada_change, 10_000),
    target!(karmada_merge, 20_000),
    target!(kubeconfig, 5_000),
    target!(kubefed, 10_000),
    target!(lengths, 5_000),
    target!(lines, 20_000),
    target!(link, 3_000),
    target!(list_options, 30_000),
    target!(location, 50_000),
    target!(managed_cluster, 5_000),
    target!(managed_service_account, 10_000),
    target!(placed, 5_000),
    target!(proxy_answer, 20_000),
    target!(proxy_url, 50_000),
    target!(raw_object, 500),
    target!(registered, 5_000),
    target!(registration, 10_000),
    target!(review_answer, 20_000),
    target!(route, 50_000),
    target!(secret, 20_000),
    target!(server_timing, 50_000),
    target!(sight, 30_000),
    target!(traceparent, 50_000),
    target!(weight, 50_000),
    target!(work, 10_000),
];

/// Checks `input` as the target `name` does.
///
/// # Panics
///
/// There is no such target, or a condition does not hold.
pub fn check(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    (target.check)(input);
}
