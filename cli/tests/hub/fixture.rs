//! The program, and what it works on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::ApiServer;
pub use hub_tests::fixture::{Fixture, test};
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::ports;
use hub_tests::testbed::Testbed;
use kit::process::LoggedProcess;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

/// The program, as an administrator of the hub.
pub fn clusters(testbed: &Testbed) -> Kubectl {
    clusters_as(testbed, &testbed.hub.server.kubectl().kubeconfig)
}

/// The program with another kubeconfig.
pub fn clusters_as(testbed: &Testbed, kubeconfig: &Path) -> Kubectl {
    Kubectl {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_kubectl-clusters")),
        kubeconfig: kubeconfig.to_path_buf(),
        cache: testbed.launcher().file("kubectl-cache"),
    }
}

/// A kubeconfig of the hub with this token.
pub fn hub_user(testbed: &Testbed, name: &str, token: &str) -> Result<PathBuf> {
    let kubeconfig = Kubeconfig {
        server: testbed.hub.server.url(),
        authority: testbed.hub.server.authority_file().to_path_buf(),
        credential: Credential::Token(token.to_owned()),
    };
    kubeconfig.write(testbed.launcher().file(&format!("cli-{name}.kubeconfig")))
}

/// A kubeconfig for a hub or a member where nothing listens.
pub fn dead(testbed: &Testbed, name: &str) -> Result<PathBuf> {
    let dead = Kubeconfig {
        server: format!("https://127.0.0.1:{}", ports::free()?),
        authority: testbed.hub.server.authority_file().to_path_buf(),
        credential: Credential::None,
    };
    dead.write(testbed.launcher().file(&format!("cli-{name}-dead.kubeconfig")))
}

/// Writes an executable file with this text.
pub fn script(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// The flags for the member, with its administrator's kubeconfig.
pub fn member(testbed: &Testbed) -> String {
    format!("--member-kubeconfig {}", testbed.member.server.kubectl().kubeconfig.display())
}

/// The same flags for a join. They name the endpoint, because it is an address of this machine, and
/// only in tests does the gateway run there, too.
pub fn joining(testbed: &Testbed) -> String {
    format!("{} --endpoint {}", member(testbed), testbed.member.server.url())
}

/// The hub administrator's kubeconfig, with another context called `name` that leads to `server`.
pub fn beside(testbed: &Testbed, name: &str, server: &ApiServer) -> Result<PathBuf> {
    let read = |path: &Path| Ok::<Value, anyhow::Error>(serde_json::from_slice(&std::fs::read(path)?)?);
    let (mut own, mut other) = (read(&testbed.hub.server.kubectl().kubeconfig)?, read(&server.kubectl().kubeconfig)?);
    other["contexts"][0]["context"] = json!({"cluster": name, "user": name});
    for list in ["clusters", "users", "contexts"] {
        let mut entry = other[list][0].take();
        entry["name"] = json!(name);
        own[list].as_array_mut().context("a list")?.push(entry);
    }
    let path = testbed.launcher().file(&format!("cli-{name}-{}.kubeconfig", server.address().port()));
    std::fs::write(&path, own.to_string())?;
    Ok(path)
}

/// Runs the program, which must end with `code`, and must print no credential. Returns its output.
pub fn ended(program: &Kubectl, line: &str, code: i32) -> Result<Output> {
    let output = program.args(line.split_whitespace()).run()?;
    ensure!(
        output.status == code,
        "`{line}` ended with {}, not {code}: {}{}",
        output.status,
        output.stderr,
        output.stdout
    );
    for secret in ["eyJ", "PRIVATE KEY"] {
        ensure!(!format!("{}{}", output.stdout, output.stderr).contains(secret), "`{line}` tells a credential");
    }
    Ok(output)
}

/// Starts the program.
pub fn started(program: &Kubectl, line: &str) -> LoggedProcess {
    let mut command = Command::new(&program.binary);
    command.args(line.split_whitespace()).env("KUBECONFIG", &program.kubeconfig);
    LoggedProcess::start(&mut command)
}

/// Sends the signal of Ctrl-C. The program must say that what was created stays.
pub fn interrupt(mut running: LoggedProcess) -> Result<()> {
    running.signal("INT");
    let told = running.text_with("interrupted: what was created stays");
    ensure!(told.contains("run the same command again"), "{told}");
    ensure!(running.ended().code() == Some(130), "the code of shells for Ctrl-C");
    Ok(())
}

/// While this is held, no other test has anything for agents on the hub.
pub fn alone_with_agents() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

/// Whether an API server rejects the token.
pub fn is_void(server: &ApiServer, token: &str) -> Result<bool> {
    Ok(server.user_of(token)?.is_none())
}

/// The token that a cluster's Secret has.
pub fn registered(hub: &ApiServer, cluster: &str) -> Result<String> {
    hub.secret(&format!("{cluster} -n {SECRET_NAMESPACE}"), "token")
}

/// The names of the Secrets with tokens in a namespace of a member.
pub fn tokens(member: &ApiServer, namespace: &str) -> Result<Vec<String>> {
    member.names(&format!("secrets -n {namespace} --field-selector type=kubernetes.io/service-account-token"))
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A ServiceAccount.
pub fn account(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

/// The rule that allows `verbs` on resources of a group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Whether a Deployment of two replicas has both.
pub fn has_both(server: &ApiServer, deployment: &str) -> Result<bool> {
    let deployment = server.field(&format!("deployment {deployment}"), "")?;
    Ok(deployment["status"]["readyReplicas"] == 2 && deployment["spec"]["replicas"] == 2)
}
