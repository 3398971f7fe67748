//! Each target on its corpus and on inputs made of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use edges::{TARGETS, generated};

/// A test each, so that they run side by side and fail by name.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            let target = TARGETS.iter().find(|target| target.name == stringify!($name));
            generated::run(target.expect("a target"));
        })*
    };
}

targets!(
    accept,
    access,
    audit_uri,
    cel,
    certificate,
    cgroup,
    claims,
    cluster_api,
    cluster_profile,
    connect_head,
    csr,
    destination,
    dialect_karmada,
    dialect_kcp,
    dialect_ocm,
    exec_output,
    exec_words,
    front_proxy,
    header_block,
    health,
    identity_rules,
    impersonable,
    inbound,
    jq,
    jsonpath,
    karmada,
    karmada_change,
    karmada_merge,
    kubeconfig,
    kubefed,
    lengths,
    lines,
    link,
    list_options,
    location,
    managed_cluster,
    managed_service_account,
    placed,
    proxy_answer,
    proxy_url,
    raw_object,
    registered,
    registration,
    review_answer,
    route,
    secret,
    server_timing,
    sight,
    traceparent,
    weight,
    work,
);

/// What libFuzzer calls for the target `NAME`, as code and as text. Those who fuzz build its
/// targets, which need a C++ compiler; this code is compiled with the tests.
macro_rules! stub {
    ($($code:tt)*) => {
        fn stub() -> (&'static str, fn(&[u8])) {
            (stringify!($($code)*), $($code)*)
        }
    };
}

stub!(|input: &[u8]| edges::check("NAME", input));

fn called(name: &str) -> String {
    format!("|input: &[u8]| edges::check(\"{name}\", input)")
}

/// A target for libFuzzer.
fn target(name: &str) -> String {
    format!("#![no_main]\n\nlibfuzzer_sys::fuzz_target!({});\n", called(name))
}

#[test]
fn what_libfuzzer_calls_compiles() {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let (text, call) = stub();
    assert_eq!(plain(text), plain(&called("NAME")));
    assert!(std::panic::catch_unwind(|| call(b"")).is_err(), "no target has that name");
}

#[test]
fn every_target_is_tested_and_fuzzed() {
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let tested: BTreeSet<_> = TESTED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, tested);
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("its manifest");
    let files = fs::read_dir(fuzz.join("fuzz_targets")).expect("the fuzz targets");
    let files: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    let name = |file: &Path| file.file_stem().expect("a name").to_string_lossy().into_owned();
    assert_eq!(names, files.iter().map(|file| name(file)).collect::<BTreeSet<_>>());
    for file in &files {
        let (name, text) = (name(file), fs::read_to_string(file).expect("a target"));
        assert_eq!(text, target(&name), "{name} calls something else than what is compiled here");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not built");
    }
}
