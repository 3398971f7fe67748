//! The kubeconfigs that the program prints work with kubectl, in each dialect.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::page::{below, first};
use hub_tests::ports;
use hub_tests::testbed::{CLUSTER, CLUSTER_X509, Testbed};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, SOON, test};

const PAGE: &str = include_str!("../../../docs/profiles.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_cluster-gateway-controllers");

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "contexts: kubectl follows them in every dialect", dialects),
        test(fixture, "contexts: the page's commands", page),
        test(fixture, "contexts: beside one's own kubeconfig, of the clusters that the hub lists", own),
    ]
}

fn printed(kubeconfig: &Path, flags: &[&str]) -> Result<Output> {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    Ok(Command::new(PROGRAM).args(["kubeconfig", &kubeconfig]).args(flags).output()?)
}

/// Writes the printed kubeconfig to a file.
fn written(testbed: &Testbed, name: &str, kubeconfig: &Path, flags: &[&str]) -> Result<PathBuf> {
    let output = printed(kubeconfig, flags)?;
    ensure!(output.status.success(), "{flags:?}: {output:?}");
    let file = testbed.directory("contexts")?.join(name);
    std::fs::write(&file, &output.stdout)?;
    Ok(file)
}

/// kubectl with the program in its PATH, which the contexts' exec user needs.
fn kubectl(testbed: &Testbed, kubeconfig: &Path, words: &[&str]) -> Result<String> {
    let directory = Path::new(PROGRAM).parent().map(Path::display).expect("a directory");
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    let kubectl = Kubectl { kubeconfig: kubeconfig.to_path_buf(), ..testbed.hub.server.kubectl() };
    kubectl.args(words).env("PATH", &path).run()?.success()
}

fn dialects(testbed: &Testbed) -> Result<()> {
    let directory = testbed.directory("contexts")?;
    let token = directory.join("token");
    std::fs::write(&token, &testbed.token)?;
    let token = format!("--token-file={}", token.display());
    let user_server = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let flags = ["--kcp-dialect", "--karmada-dialect=standalone", &format!("--ocm-user-server-listen={user_server}")];
    let gateway = testbed.start_gateway("contexts-gateway", &testbed.hub.gateway_kubeconfig(), &flags)?;
    let nobody = testbed.hub.server.kubeconfig("contexts-nobody", Credential::None)?;
    let ca = format!("--gateway-ca-file={}", gateway.authority_file().display());
    let name = testbed.member.server.read("namespace default")?["metadata"]["uid"].clone();
    for (dialect, address) in
        [("native", gateway.address()), ("kcp", gateway.address()), ("ocm-user-server", user_server)]
    {
        let (url, spelling) = (format!("--gateway-url=https://{address}"), format!("--dialect={dialect}"));
        let file = written(testbed, dialect, &nobody, &[CLUSTER, &token, &url, &ca, &spelling])?;
        ensure!(!std::fs::read_to_string(&file)?.contains(&testbed.token), "{dialect}: a credential is printed");
        let uid = kubectl(testbed, &file, &["get", "namespaces", "default", "-o", "jsonpath={.metadata.uid}"])?;
        ensure!(uid == name, "{dialect}: {uid} is another cluster's");
    }
    karmada(testbed, &nobody, &[CLUSTER, &token, &format!("--gateway-url=https://{}", gateway.address()), &ca])?;
    // Through the hub, whose address and CA come from the kubeconfig.
    let file = written(testbed, "hub", &nobody, &[CLUSTER, &token])?;
    let uid = kubectl(testbed, &file, &["get", "namespaces", "default", "-o", "jsonpath={.metadata.uid}"])?;
    ensure!(uid == name, "{uid} is another cluster's");
    for dialect in ["kcp", "ocm-user-server"] {
        let output = printed(&nobody, &[CLUSTER, &token, &format!("--dialect={dialect}")])?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && told.contains("requires --gateway-url"), "{told}");
    }
    Ok(())
}

/// This dialect reviews another right, and the member sees the caller.
fn karmada(testbed: &Testbed, nobody: &Path, flags: &[&str]) -> Result<()> {
    let file = written(testbed, "karmada", nobody, &[flags, &["--dialect=karmada"]].concat())?;
    let version = ["get", "--raw", "/version"];
    let denied = kubectl(testbed, &file, &version).expect_err("no right on clusters/proxy");
    ensure!(format!("{denied:#}").contains("clusters/proxy"), "{denied:#}");
    let name = "contexts-karmada";
    let hub = &testbed.hub.server;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["get"]}]});
    hub.apply(&[role])?;
    hub.bind(name, name, ("default", "tester"))?;
    wait::until("the right", SOON, || kubectl(testbed, &file, &version))?;
    let denied = kubectl(testbed, &file, &["get", "--raw", "/api/v1/secrets"]).expect_err("no right on the member");
    ensure!(format!("{denied:#}").contains("system:serviceaccount:default:tester"), "{denied:#}");
    Ok(())
}

/// The commands of the page, unchanged.
fn page(testbed: &Testbed) -> Result<()> {
    let berlin = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member("berlin", &berlin)?;
    let directory = testbed.directory("contexts-page")?;
    std::fs::write(directory.join("hub.token"), &testbed.token)?;
    let script = first(below(PAGE, "\n## Kubeconfigs\n")?, "sh")?;
    let kubectl = testbed.hub.server.kubectl();
    let programs = [kubectl.binary.parent(), Path::new(PROGRAM).parent()].map(|path| path.map(Path::to_path_buf));
    let path = std::env::var("PATH")?;
    let programs = programs.into_iter().flatten().chain(std::env::split_paths(&path));
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(&directory)
        .env("PATH", std::env::join_paths(programs)?)
        .env("KUBECONFIG", &kubectl.kubeconfig)
        .env("HOME", &directory)
        .output()?;
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{output:?}");
    ensure!(seen.lines().filter(|line| line.starts_with("kube-system ")).count() == 2, "{seen}");
    Ok(())
}

fn own(testbed: &Testbed) -> Result<()> {
    let own = testbed.hub.server.kubectl().kubeconfig;
    let user = format!("--user-from={}", own.display());
    let file = written(testbed, "own", &own, &["--all", &user])?;
    let text = std::fs::read_to_string(&file)?;
    for secret in ["client-key", "client-certificate", "token"] {
        ensure!(!text.contains(secret), "{secret}: {text}");
    }
    let both = std::env::join_paths([&file, &own])?;
    for cluster in [CLUSTER, CLUSTER_X509] {
        let words = ["--context", cluster, "get", "--raw", "/readyz"];
        ensure!(kubectl(testbed, Path::new(&both), &words)?.contains("ok"), "{cluster}");
    }
    let mut labelled = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).document("contexts-own");
    labelled["metadata"]["labels"]["contexts"] = "own".into();
    testbed.hub.apply(&[labelled])?;
    let file = wait::until("the gateway to have it", SOON, || {
        let file = written(testbed, "labelled", &own, &["-l", "contexts=own", &user])?;
        ensure!(std::fs::read_to_string(&file)?.contains("contexts-own"), "it lists none");
        Ok(file)
    })?;
    let contexts = kubectl(testbed, &file, &["config", "get-contexts", "-o", "name"])?;
    ensure!(contexts == "contexts-own\n", "{contexts}");
    testbed.hub.forget_member("contexts-own")?;
    let output = printed(&own, &["-l", "cluster.core.oam.dev/no-such-label", &user])?;
    ensure!(output.status.success() && !String::from_utf8_lossy(&output.stdout).contains(CLUSTER), "{output:?}");
    Ok(())
}
