//! All refusals of a kubeconfig, on a hub: each creates an Event, opens or runs nothing that the
//! kubeconfig names, and repeats nothing of it.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use kit::pki::{Authority, Issued, Leaf};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{
    Fixture, SOON, apply, arguments, event, kubeconfig_secret, member_kubeconfig, namespace, test, wait_secret,
};
use crate::program::Program;

/// Text that must not be repeated.
const CANARY: &str = "c4n4ry";
const FLEET: &str = "refused-fleet";
const CLUSTERS: &str = "refused-clusters";
/// `O_NONBLOCK` of open(2): a pipe without a reader cannot be opened for writing.
const NON_BLOCKING: i32 = 0o4000;
const NOBODY_READS: i32 = 6; // ENXIO

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "refusals: each says why in an Event, opens and runs nothing, and repeats nothing", each)]
}

/// A pipe that would block a process that opens it, and a program that leaves a mark.
struct Canaries {
    pipe: PathBuf,
    program: PathBuf,
    mark: PathBuf,
}

/// Secrets that are refused at once. Of more than 32 Events that wait for one namespace, the last
/// are left out.
const AT_ONCE: usize = 24;

/// The parts of a valid kubeconfig.
struct Sample {
    server: String,
    authority: String,
    issued: Issued,
    foreign: Issued,
    canaries: Canaries,
}

fn each(testbed: &Testbed) -> Result<()> {
    let sample = Sample::new(testbed)?;
    let rows = sample.rows();
    apply(testbed, &[namespace(FLEET), namespace(CLUSTERS)])?;
    let listed = format!("--exec-commands={}", sample.canaries.program.display());
    let flags = ["--enable=kubeconfig", "--watch-namespaces=refused-fleet", &listed, "--log-level=debug"];
    let kubeconfig = testbed.hub.server.kubectl().kubeconfig;
    let program = Program::start(testbed, "refusals", &arguments(CLUSTERS, &kubeconfig, &flags))?;
    let mut secrets: Vec<_> =
        rows.iter().enumerate().map(|(number, (_, text))| kubeconfig_secret(FLEET, &name(number), text)).collect();
    secrets.extend(odd());
    // Valid ones among them are registered, without a look at the programs that they run.
    secrets.push(kubeconfig_secret(FLEET, "good", &member_kubeconfig(testbed, CANARY)));
    let runs = json!({"exec": exec(&sample.canaries.program.display().to_string())});
    secrets.push(kubeconfig_secret(FLEET, "listed", &sample.user(runs)));
    secrets.push(kubeconfig_secret(FLEET, "local", &member_kubeconfig(testbed, CANARY)));
    let expected = rows.iter().enumerate().map(|(number, (expected, _))| (name(number), *expected));
    let odd = [("no-key", "has no key"), ("binary", "not UTF-8"), ("large", "larger than 256 KiB")];
    let expected: Vec<_> = expected.chain(odd.map(|(name, expected)| (name.to_owned(), expected))).collect();
    for some in secrets.chunks(AT_ONCE) {
        apply(testbed, some)?;
        let names: Vec<_> = some.iter().filter_map(|secret| secret["metadata"]["name"].as_str()).collect();
        for (name, expected) in expected.iter().filter(|(name, _)| names.contains(&name.as_str())) {
            let note = wait::until("an Event", SOON, || event(testbed, FLEET, name, "ClusterRefused"))?;
            ensure!(note.contains(expected), "{name}: {note}, not {expected:?}");
        }
    }
    wait_secret(testbed, CLUSTERS, "good")?;
    wait_secret(testbed, CLUSTERS, "listed")?;
    wait::until("an Event", SOON, || event(testbed, FLEET, "local", "InvalidClusterName"))?;
    sample.canaries.are_untouched()?;
    let registered = testbed.hub.server.read(&format!("secrets -n {CLUSTERS}"))?;
    let registered: Vec<_> =
        registered["items"].as_array().context("a list")?.iter().map(|secret| &secret["metadata"]["name"]).collect();
    ensure!(registered == ["good", "listed"], "{registered:?}");
    repeats_nothing(testbed, &program)
}

fn repeats_nothing(testbed: &Testbed, program: &Program) -> Result<()> {
    let events = testbed.hub.server.read(&format!("events -n {FLEET}"))?.to_string();
    let pages = [program.get("/debug/sources")?, program.get("/debug/sources?format=json")?];
    let of_refusals = [events].into_iter().chain(pages).collect::<Vec<_>>();
    for told in &of_refusals {
        ensure!(told.contains(&name(0)), "nothing is told of what was refused: {told}");
    }
    let secrets: Vec<_> = encodings(CANARY).into_iter().chain([CANARY.to_owned(), "PRIVATE KEY".to_owned()]).collect();
    for told in of_refusals.into_iter().chain([program.get("/metrics")?, program.log()?]) {
        let repeated = secrets.iter().find(|secret| told.contains(*secret));
        ensure!(repeated.is_none(), "a credential is told: {repeated:?} in {told}");
    }
    Ok(())
}

/// The characters that the base64 of any text contains if the text contains these words, for each
/// offset: three bytes make four characters, and a character that also holds bits of a neighbour is
/// left out.
fn encodings(words: &str) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let text = STANDARD.encode([&vec![0; before][..], words.as_bytes()].concat());
        text[(8 * before).div_ceil(6)..8 * (before + words.len()) / 6].to_owned()
    })
}

fn name(row: usize) -> String {
    format!("row-{row}")
}

fn exec(command: &str) -> Value {
    json!({"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"})
}

/// Secrets without the text of a kubeconfig.
fn odd() -> Vec<Value> {
    let mut all: Vec<_> = ["no-key", "binary", "large"].map(|name| kubeconfig_secret(FLEET, name, "")).into();
    for (secret, data) in all.iter_mut().zip([
        json!({"password": STANDARD.encode(CANARY)}),
        json!({"kubeconfig": STANDARD.encode([0xff, 0xfe, 0])}),
        json!({"kubeconfig": STANDARD.encode(format!("token: {CANARY}\n").repeat(74_000))}),
    ]) {
        secret.as_object_mut().expect("an object").remove("stringData");
        secret["data"] = data;
    }
    all
}

// === impl Sample ===

impl Sample {
    fn new(testbed: &Testbed) -> Result<Self> {
        let authority = Authority::new("refused-ca");
        let issued = authority.issue(&Leaf::client("admin"));
        let foreign = authority.issue(&Leaf::client("another"));
        let canaries = Canaries::lay(&testbed.directory("canaries")?)?;
        let authority = STANDARD.encode(authority.certificate_pem());
        Ok(Self { server: testbed.member.server.url(), authority, issued, foreign, canaries })
    }

    fn good(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": self.server, "certificate-authority-data": self.authority}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {
                "client-certificate-data": STANDARD.encode(&self.issued.certificate_pem),
                "client-key-data": STANDARD.encode(&self.issued.key_pem)}}],
        })
    }

    /// The kubeconfig with the value at `pointer` (RFC 6901) replaced; the pointer's last part may
    /// be new.
    fn with(&self, pointer: &str, value: impl Into<Value>) -> String {
        let mut document = self.good();
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        document.pointer_mut(parent).expect("a part of it")[field] = value.into();
        document.to_string()
    }

    fn in_cluster(&self, field: &str, value: impl Into<Value>) -> String {
        self.with(&format!("/clusters/0/cluster/{field}"), value)
    }

    fn in_user(&self, field: &str, value: impl Into<Value>) -> String {
        self.with(&format!("/users/0/user/{field}"), value)
    }

    fn user(&self, user: Value) -> String {
        self.with("/users/0/user", user)
    }

    /// The expected reason for each kubeconfig.
    fn rows(&self) -> Vec<(&'static str, String)> {
        [self.files_and_programs(), self.users(), self.clusters(), self.documents()].concat()
    }

    fn files_and_programs(&self) -> Vec<(&'static str, String)> {
        let here = self.canaries.pipe.display().to_string();
        let another = self.canaries.program.with_file_name("another").display().to_string();
        vec![
            ("certificate-authority names a file", self.in_cluster("certificate-authority", here.as_str())),
            ("client-certificate names a file", self.in_user("client-certificate", here.as_str())),
            ("client-key names a file", self.in_user("client-key", here.as_str())),
            ("tokenFile names a file", self.in_user("tokenFile", here.as_str())),
            ("tokenFile names a file", self.user(json!({"tokenFile": here, "token": CANARY}))),
            ("exec.command is not among", self.user(json!({"exec": exec(&another)}))),
            ("exec.command is not among", self.user(json!({"exec": exec("another")}))),
            ("exec.env sets a variable", {
                let mut exec = exec(&self.canaries.program.display().to_string());
                exec["env"] = json!([{"name": "LD_PRELOAD", "value": CANARY}]);
                self.user(json!({"exec": exec}))
            }),
            ("exec and another credential", {
                self.in_user("exec", exec(&self.canaries.program.display().to_string()))
            }),
        ]
    }

    fn users(&self) -> Vec<(&'static str, String)> {
        vec![
            ("auth-provider is not supported", self.in_user("auth-provider", json!({"name": CANARY}))),
            ("username is not supported", self.in_user("username", CANARY)),
            ("password is not supported", self.in_user("password", CANARY)),
            ("as is not supported", self.in_user("as", CANARY)),
            ("as-uid is not supported", self.in_user("as-uid", CANARY)),
            ("as-groups is not supported", self.in_user("as-groups", json!([CANARY]))),
            ("as-user-extra is not supported", self.in_user("as-user-extra", json!({CANARY: [CANARY]}))),
            ("client-key-data: private key does not fit", {
                self.in_user("client-key-data", STANDARD.encode(&self.foreign.key_pem))
            }),
            ("client-key-data: no usable private key", self.in_user("client-key-data", STANDARD.encode(CANARY))),
            ("client-key-data is not base64", self.in_user("client-key-data", format!("{CANARY}~"))),
            ("set without client-key-data", self.in_user("client-key-data", Value::Null)),
            ("set without client-certificate-data", self.in_user("client-certificate-data", Value::Null)),
            ("the user has no credential", self.user(json!({}))),
        ]
    }

    fn clusters(&self) -> Vec<(&'static str, String)> {
        let proxied = format!("{}/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy", self.server);
        vec![
            ("certificate-authority-data: no certificate", {
                self.in_cluster("certificate-authority-data", STANDARD.encode(CANARY))
            }),
            ("certificate-authority-data is not base64", {
                self.in_cluster("certificate-authority-data", format!("{CANARY}~"))
            }),
            ("--allow-insecure is not", {
                self.with("/clusters/0/cluster", json!({"server": self.server, "insecure-skip-tls-verify": true}))
            }),
            ("server is empty", self.in_cluster("server", Value::Null)),
            ("server: http would send", self.in_cluster("server", "http://10.0.0.7")),
            ("must not have a user", self.in_cluster("server", format!("https://admin:{CANARY}@10.0.0.7"))),
            ("--deny-endpoints", self.in_cluster("server", "https://169.254.169.254")),
            ("--deny-endpoints", self.in_cluster("server", "https://[fe80::1]:6443")),
            ("--deny-endpoints", self.in_cluster("proxy-url", "http://169.254.169.254:3128")),
            ("points to the gateway itself", self.in_cluster("server", proxied)),
            ("proxy-url: the URL's scheme", self.in_cluster("proxy-url", format!("ftp://a:{CANARY}@proxy"))),
            ("tls-server-name", self.in_cluster("tls-server-name", "c1:6443")),
        ]
    }

    fn documents(&self) -> Vec<(&'static str, String)> {
        let mut several = self.good();
        several["current-context"] = Value::Null;
        let more = json!({"name": "more", "context": {"cluster": "it", "user": "it"}});
        several["contexts"].as_array_mut().expect("contexts").push(more);
        vec![
            ("it has no contexts", String::from("{}")),
            ("it has no contexts", self.with("/contexts", json!([]))),
            ("there are several contexts", several.to_string()),
            ("current-context names an entry that is not", self.with("/current-context", CANARY)),
            ("the context's cluster names an entry that is not", self.with("/clusters", json!([]))),
            ("the context's user names an entry that is not", self.with("/users", json!([]))),
            ("the context's user is empty", self.with("/contexts/0/context/user", "")),
            ("near line", format!("users: {CANARY}")),
            ("near line", format!("token: {CANARY}\ntoken: {CANARY}")),
            ("near line", format!("a: &{CANARY} [{CANARY}]\nb: *{CANARY}")),
            ("near line", format!("{}{}", "[".repeat(50_000), "]".repeat(50_000))),
        ]
    }
}

// === impl Canaries ===

impl Canaries {
    fn lay(directory: &Path) -> Result<Self> {
        let [pipe, program, mark] = ["pipe", "program", "mark"].map(|name| directory.join(name));
        ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe");
        for name in [&program, &directory.join("another")] {
            std::fs::write(name, format!("#!/bin/sh\n: >{}\n", mark.display()))?;
            std::fs::set_permissions(name, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { pipe, program, mark })
    }

    /// Whether the pipe has no reader and the program left no mark: a process that opened the pipe
    /// would still wait for a writer.
    fn are_untouched(&self) -> Result<()> {
        let opened = OpenOptions::new().write(true).custom_flags(NON_BLOCKING).open(&self.pipe);
        let code = opened.as_ref().err().and_then(std::io::Error::raw_os_error);
        ensure!(code == Some(NOBODY_READS), "a file of a kubeconfig was opened: {opened:?}");
        ensure!(!self.mark.exists(), "a program of a kubeconfig was run");
        Ok(())
    }
}
