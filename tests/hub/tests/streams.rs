//! Streams into containers: `exec`, `attach`, `cp`, each over WebSocket and over SPDY, compared
//! with the member.

use hub_tests::kubectl::Invocation;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::compare::{self, Ways};
use crate::fixture::Fixture;

/// kubectl's protocol for streams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    WebSocket,
    Spdy,
}

/// How many of the first entries of [`EXEC`] have nothing that the others do not have.
const SIMPLE: usize = 3;

/// Name, exit code, shell script, and standard input if the command has one.
const EXEC: &[(&str, i32, &str, Option<&str>)] = &[
    ("success", 0, "echo done", None),
    ("exit code", 7, "exit 7", None),
    ("both outputs", 0, "echo out; echo err >&2", None),
    ("exit code after output", 3, "echo last words; exit 3", None),
    ("input", 0, "cat", Some("one\ntwo\nno newline at the end")),
    ("empty input", 0, "cat; echo ended", Some("")),
    // A command that ends before its input has arrived races inside kubectl itself, with or without
    // a gateway: over SPDY the exit code is sometimes lost even directly on the member.
    ("input that is not read", 5, "sleep 0.3; exit 5", Some("ignored")),
    ("much output", 0, "seq 1 200000", None),
    ("no such program", 127, "no-such-program-here", None),
];

/// Larger than any window on the way, and not compressible into one.
const BULK: usize = 8 << 20;

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    let mut trials = Vec::new();
    for protocol in [Protocol::WebSocket, Protocol::Spdy] {
        for &(name, status, script, stdin) in if ways == Ways::Dialled { EXEC } else { &EXEC[SIMPLE..] } {
            let name = format!("streams::exec over {protocol:?}: {name}");
            trials.push(ways.test(fixture, &name, move |testbed| exec(testbed, ways, protocol, status, script, stdin)));
        }
        let mut push = |what: &str, run: fn(&Testbed, Ways, Protocol) -> Result<()>| {
            let name = format!("streams::{what} over {protocol:?}");
            trials.push(ways.test(fixture, &name, move |testbed| run(testbed, ways, protocol)));
        };
        push("exec in an absent pod", absent);
        push("exec of bulk data both ways", bulk);
        push("attach with input", |testbed, ways, protocol| attach(testbed, ways, protocol, Some("typed\n")));
        push("attach without input", |testbed, ways, protocol| attach(testbed, ways, protocol, None));
        push("cp to a pod and back", copy);
    }
    trials
}

// === impl Protocol ===

impl Protocol {
    /// `invocation` with this protocol for exec, attach, cp and port-forward.
    pub(crate) fn apply(self, invocation: Invocation) -> Invocation {
        let websockets = if matches!(self, Self::WebSocket) { "true" } else { "false" };
        invocation
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
    }
}

/// The namespace and pod of these tests, created by the first test that needs them.
pub(crate) fn pod(testbed: &Testbed) -> Result<()> {
    static READY: parking_lot::Mutex<bool> = parking_lot::Mutex::new(false);
    let mut ready = READY.lock();
    if !*ready {
        testbed.member.server.create_namespace("streams")?;
        testbed.member.run_pod("streams", "shell", "")?;
        *ready = true;
    }
    Ok(())
}

fn exec(
    testbed: &Testbed,
    ways: Ways,
    protocol: Protocol,
    status: i32,
    script: &str,
    stdin: Option<&str>,
) -> Result<()> {
    pod(testbed)?;
    compare::everywhere(testbed, ways, status, |kubectl, _| match stdin {
        None => protocol.apply(kubectl.args(["exec", "shell", "-n", "streams", "--", "sh", "-c", script])),
        Some(text) => {
            protocol.apply(kubectl.args(["exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", script]).stdin(text))
        }
    })
    .map(drop)
}

fn absent(testbed: &Testbed, ways: Ways, protocol: Protocol) -> Result<()> {
    pod(testbed)?;
    let words = ["exec", "absent", "-n", "streams", "--", "true"];
    compare::everywhere(testbed, ways, 1, |kubectl, _| protocol.apply(kubectl.args(words))).map(drop)
}

fn bulk(testbed: &Testbed, ways: Ways, protocol: Protocol) -> Result<()> {
    pod(testbed)?;
    let text = noise(BULK);
    for route in ways.proxied() {
        let words = ["exec", "-i", "shell", "-n", "streams", "--", "cat"];
        let output = protocol.apply(testbed.kubectl(route).args(words)).stdin(text.clone()).run()?;
        let (length, same) = (output.stdout.len(), output.stdout.as_bytes() == text);
        ensure!(output.status == 0 && same, "via {}: {length} bytes came back: {}", route.name(), output.stderr);
    }
    Ok(())
}

fn attach(testbed: &Testbed, ways: Ways, protocol: Protocol, stdin: Option<&str>) -> Result<()> {
    pod(testbed)?;
    let output = compare::everywhere(testbed, ways, 0, |kubectl, _| match stdin {
        None => protocol.apply(kubectl.args(["attach", "shell", "-n", "streams"])),
        Some(text) => protocol.apply(kubectl.args(["attach", "-i", "shell", "-n", "streams"]).stdin(text)),
    })?;
    let expected = format!("attached to main\n{}", stdin.unwrap_or_default());
    ensure!(output.stdout == expected && output.stderr.contains("warnings of main"), "{output:?}");
    Ok(())
}

fn copy(testbed: &Testbed, ways: Ways, protocol: Protocol) -> Result<()> {
    pod(testbed)?;
    let directory = testbed.directory(&format!("copy-{ways:?}-{protocol:?}"))?;
    std::fs::create_dir_all(directory.join("sent/inner"))?;
    let text = noise(1 << 20);
    std::fs::write(directory.join("sent/inner/file"), &text)?;
    for route in ways.all() {
        let run = |from: &str, to: &str| {
            let words = ["cp", from, to, "-n", "streams"];
            protocol.apply(testbed.kubectl(route).args(words)).directory(&directory).run()?.success()
        };
        let (inside, back) = (format!("{protocol:?}-{}", ways.scope(route)), format!("back-{}", route.name()));
        run("sent", &format!("shell:{inside}"))?;
        run(&format!("shell:{inside}/inner"), &back)?;
        ensure!(std::fs::read(directory.join(back).join("file"))? == text, "via {}: another file", route.name());
    }
    Ok(())
}

/// Letters that do not repeat soon (a multiplicative generator), as text so that kubectl's output
/// can be compared.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b'a' + u8::try_from((state >> 33) % 26).unwrap_or_default()
    };
    (0..length).map(next).collect()
}
