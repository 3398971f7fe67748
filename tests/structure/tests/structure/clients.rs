//! Clients of hubs stay clients: they call the gateway as any client does, and know nothing of its
//! internals.

use std::collections::BTreeSet;
use std::process::Command;

use structure_tests::workspace;

const CLIENTS: [&str; 2] = ["cluster-gateway-controllers", "kubectl-clusters"];
/// Packages that serve requests, and those that decide about them.
const SERVERS: [&str; 6] = ["gateway", "auth", "links", "tunnel", "tunnel-server", "tunnel-agent"];

/// The packages that are built into `program`, directly or through others. Its tests may use more.
fn built_into(program: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--package", program, "--locked", "--offline", "--prefix", "none", "--format", "{p}"]);
    let output = cargo.args(["--edges", "normal"]).current_dir(workspace()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn clients_are_built_without_servers() {
    for client in CLIENTS {
        let built = built_into(client);
        assert!(built.contains("hub") && built.contains("api"), "{client} is read wrongly: {built:?}");
        let wrong: Vec<_> = SERVERS.iter().filter(|server| built.contains(**server)).collect();
        assert!(wrong.is_empty(), "{client} is built with {wrong:?}: a client asks hubs and gateways by their APIs");
    }
}
