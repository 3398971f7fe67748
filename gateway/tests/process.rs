//! The binary as a process: its exit codes, its complaints, its signals.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use kit::client::{Client, H2Connection, H2Options};
use kit::member::{BlackHole, FakeMember, MemberOptions, Reply};
use kit::pki::{Authority, Leaf, Trust};
use kit::process::LoggedProcess;
use kit::proxy::{FakeProxy, ProxyKind};
use kit::wait::{WAIT, becomes};
use tempfile::TempDir;
use tokio::time::Instant;

/// A gateway without a hub.
struct Running {
    process: LoggedProcess,
    authority: Authority,
    #[allow(dead_code, reason = "the files of the process live in it")]
    directory: TempDir,
}

// === impl Running ===

impl Running {
    fn start(extra: &[&str]) -> Self {
        Self::start_by(command(), tempfile::tempdir().unwrap(), extra)
    }

    /// `command` runs the program with the arguments that come; clusters are those of `directory`.
    fn start_by(mut command: Command, directory: TempDir, extra: &[&str]) -> Self {
        let authority = Authority::new("gateway-ca");
        let files = authority.issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").unwrap();
        let tokens = directory.path().join("tokens.csv");
        std::fs::write(&tokens, "admin-token,admin,1,system:masters\nother-token,other,2\n").unwrap();
        command
            .arg(format!("--token-auth-file={}", tokens.display()))
            .args(["--standalone", "--clusters-dir"])
            .arg(directory.path())
            .args(["--secure-port=0", "--bind-address=127.0.0.1", "--log-format=json"])
            .arg("--tls-cert-file")
            .arg(files.certificate)
            .arg("--tls-private-key-file")
            .arg(files.key)
            .args(extra);
        Self { process: LoggedProcess::start(&mut command), authority, directory }
    }

    fn address(&self) -> SocketAddr {
        self.process.line("serving")["address"].as_str().unwrap().parse().unwrap()
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-gateway"));
    command.env_clear();
    command
}

/// The program with names as in `hosts`, in the format of hosts(5): it sees another `/etc/hosts`
/// than other programs.
fn command_with_hosts(hosts: &Path) -> Command {
    let mut command = Command::new("unshare");
    let script = r#"mount --bind "$0" /etc/hosts && exec "$@""#;
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(hosts);
    command.arg(env!("CARGO_BIN_EXE_cluster-gateway")).env_clear();
    command
}

fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> (Output, String) {
    let output = command().args(arguments).envs(environment.iter().copied()).output().unwrap();
    let complaint = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success(), "{complaint}");
    (output, complaint)
}

#[test]
fn an_audit_log_without_a_directory_is_explained() {
    let mut process = Running::start(&["--audit-log-path=/nowhere/audit.log"]);
    let complaint = process.process.text_with("audit");
    assert!(complaint.contains("the directory of /nowhere/audit.log does not exist: create it"), "{complaint}");
    assert!(!process.process.ended().success());
}

#[test]
fn all_mistakes_are_told_at_once() {
    let (_, complaint) = refused(&["--standalone", "--feature-gates=Oops", "--tls-cert-file=tls.crt"], &[]);
    for part in ["--tls-private-key-file is required", "--clusters-dir", "Oops"] {
        assert!(complaint.contains(part), "{part} missing in: {complaint}");
    }
}

#[test]
fn outside_a_pod_the_way_out_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let files = Authority::new("ca").issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").unwrap();
    let pair = [("--tls-cert-file", files.certificate), ("--tls-private-key-file", files.key)];
    let pair = pair.map(|(flag, path)| format!("{flag}={}", path.display()));
    let (_, complaint) = refused(&["--secure-port=0", &pair[0], &pair[1]], &[]);
    assert!(complaint.contains("--kubeconfig") && complaint.contains("--standalone"), "{complaint}");
}

/// The image has `/patch` and `/apiserver` as links to the program.
#[test]
fn a_links_name_chooses_what_runs() {
    let directory = tempfile::tempdir().unwrap();
    let call = |name: &str, arguments: &[&str]| {
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cluster-gateway"), &link).unwrap();
        let output = Command::new(link).args(arguments).env_clear().output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, complaint) = call("patch", &["--secret-name=tls", "--secret-namespace=vela-system"]);
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains("--kubeconfig"), "outside a pod the way out is named: {complaint}");
    let (code, complaint) = call("apiserver", &["apiserver", "--secret-namespace="]);
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains("--secret-namespace must not be empty"), "{complaint}");
}

#[test]
fn every_flag_reads_the_environment() {
    let (_, complaint) = refused(&["--standalone"], &[("CLUSTER_GATEWAY_DRAIN_TIMEOUT", "soon")]);
    assert!(complaint.contains("soon") && complaint.contains("--drain-timeout"), "{complaint}");
}

#[test]
fn the_log_says_why_the_hub_cannot_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let files = Authority::new("ca").issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let hub = format!(
        "{{apiVersion: v1, kind: Config, current-context: hub, users: [{{name: me, user: {{token: canary-token}}}}],
        clusters: [{{name: hub, cluster: {{server: 'https://{nobody}'}}}}],
        contexts: [{{name: hub, context: {{cluster: hub, user: me}}}}]}}"
    );
    std::fs::write(&kubeconfig, hub).unwrap();
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut command = command();
    command
        .args(["--secure-port=0", "--bind-address=127.0.0.1", "--log-format=json"])
        .arg(flag("kubeconfig", &kubeconfig))
        .arg(flag("tls-cert-file", &files.certificate))
        .arg(flag("tls-private-key-file", &files.key));
    let process = LoggedProcess::start(&mut command);
    let mut awaited = ["cannot watch cluster Secrets on the hub", "watch of the ConfigMap failed"].to_vec();
    while !awaited.is_empty() {
        let line = process.next_line(&awaited.join(", "));
        assert!(!line.contains("kube_client::client::builder"), "not told twice: {line}");
        if let Some(told) = awaited.iter().position(|message| line.contains(message)) {
            assert!(line.contains("connection refused"), "{line}");
            awaited.remove(told);
        }
    }
}

#[test]
fn flags_without_effect_are_named_and_unknown_ones_end_the_start() {
    let process = Running::start(&["--etcd-servers", "https://etcd:2379", "--log_dir=/var/log", "--profiling=false"]);
    for flag in ["--etcd-servers", "--log-dir", "--profiling"] {
        process.process.line(&format!("{flag} is accepted for compatibility and has no effect"));
    }
    process.address();
    let (output, complaint) = refused(&["--standalone", "--drain-timeot=1s"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint.contains("--drain-timeot") && complaint.contains("--drain-timeout"), "{complaint}");
}

#[tokio::test]
async fn sigterm_asks_clients_to_leave_and_exits_with_success() {
    let mut process = Running::start(&["--shutdown-delay-duration=0s"]);
    let address = process.address();
    let client = Client::new(address, Trust::Authority(&process.authority), None);
    let idle = client.h2().await.unwrap();
    becomes(WAIT, "the gateway to be ready", async || idle.get("/readyz", &[]).await.unwrap().status() == 200).await;
    process.process.signal("TERM");
    process.process.line("shutting down");
    // The fate of the client's own last words depends on which side closes first; that the
    // connection ends is what counts.
    let _ = idle.closed().await;
    process.process.line("drained");
    let exit = process.process.ended();
    assert!(exit.success(), "{exit}");
}

/// The name's first address swallows every SYN, as a broken IPv6 does: the second is not left
/// waiting for it. So with a proxy's name.
#[tokio::test]
#[allow(clippy::print_stderr, reason = "who runs it is to know what was not tested")]
async fn a_member_whose_first_address_is_dead_is_reached_at_its_second() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    std::fs::write(&hosts, "::1 localhost\n127.0.0.1 localhost\n").unwrap();
    let may_mount = command_with_hosts(&hosts).arg("--version").output().is_ok_and(|output| output.status.success());
    if !may_mount {
        eprintln!("left out: nobody may have a mount namespace here, so no name has two addresses");
        return;
    }
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::json(200, &serde_json::json!({})));
    let proxy = FakeProxy::start(ProxyKind::Http).await;
    let [port, proxy_port] = [member.address(), proxy.address()].map(|address| address.port());
    let dead = async |port: u16| BlackHole::at((Ipv6Addr::LOCALHOST, port).into()).await;
    let _holes = (dead(port).await, dead(proxy_port).await);
    let cluster = |name: &str, data: serde_json::Value| {
        let mut secret = serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": data,
            "metadata": {"name": name, "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"}},
        });
        secret["stringData"]["ca.crt"] = member.ca_pem().into();
        secret["stringData"]["token"] = "t".into();
        std::fs::write(directory.path().join(format!("{name}.json")), secret.to_string()).unwrap();
    };
    cluster("direct", serde_json::json!({"endpoint": format!("https://localhost:{port}")}));
    let proxy_url = format!("http://localhost:{proxy_port}");
    cluster("proxied", serde_json::json!({"endpoint": member.url(), "proxy-url": proxy_url}));
    let process = Running::start_by(command_with_hosts(&hosts), directory, &["--dial-timeout=10s"]);
    let connection = Client::new(process.address(), Trust::Authority(&process.authority), None).h2().await.unwrap();
    let ready = async || connection.get("/readyz", &[]).await.is_ok_and(|answer| answer.status() == 200);
    becomes(WAIT, "the clusters to be read", ready).await;
    for name in ["direct", "proxied"] {
        let started = Instant::now();
        let target = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{name}/proxy/api/v1/pods");
        let answer = connection.get(&target, &[("authorization", "Bearer admin-token")]).await.unwrap();
        let (status, took) = (answer.status(), started.elapsed());
        assert_eq!(status, 200, "{name} after {took:?}: {}", answer.text().await.unwrap());
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}

#[tokio::test]
async fn who_may_changes_the_log_level_of_the_running_process() {
    let process = Running::start(&[]);
    let client = Client::new(process.address(), Trust::Authority(&process.authority), None);
    let connection = client.h2().await.unwrap();
    let set = async |token: &str, level: &'static str| {
        let token = format!("Bearer {token}");
        let headers = [("authorization", token.as_str())];
        connection.call(http::Method::PUT, "/debug/flags/v", &headers, level).await.unwrap().status()
    };
    assert_eq!(set("other-token", "debug").await, 403);
    assert_eq!(set("admin-token", "gateway=loud").await, 400);
    assert_eq!(set("admin-token", "debug").await, 200);
    assert_eq!(process.process.line("log level changed")["level"], "debug");
    connection.get("/livez", &[]).await.unwrap();
    assert_eq!(process.process.line("request done")["level"], "DEBUG");
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let mut process = Running::start(&["--shutdown-delay-duration=1h"]);
    process.address();
    process.process.signal("TERM");
    process.process.line("shutting down");
    process.process.signal("TERM");
    let exit = process.process.ended();
    assert_eq!(exit.code(), Some(130));
}

/// The log of a process started with `flag`, after a request to a member that is away and one by a
/// stranger.
async fn logged(flag: &str) -> LoggedProcess {
    logged_after(flag, 1).await.process
}

/// The same after so many requests to the member that is away.
async fn logged_after(flag: &str, requests: usize) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "away", "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"}},
        "stringData": {"endpoint": "https://127.0.0.1:1", "token": "t", "ca.crt": Authority::new("member-ca").root_pem()},
    });
    std::fs::write(directory.path().join("away.json"), secret.to_string()).unwrap();
    let process = Running::start_by(command(), directory, &[flag]);
    let connection = Client::new(process.address(), Trust::Authority(&process.authority), None).h2().await.unwrap();
    let ready = async || connection.get("/readyz", &[]).await.is_ok_and(|answer| answer.status() == 200);
    becomes(WAIT, "the cluster to be read", ready).await;
    let clusters = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";
    let target = format!("{clusters}/away/proxy/api/v1/namespaces/ns/pods/p/log?container=main");
    for _ in 0..requests {
        let answer = connection.get(&target, &[("authorization", "Bearer admin-token")]).await.unwrap();
        assert_eq!(answer.status(), 503);
    }
    let answer = connection.get(clusters, &[("authorization", "Bearer nobodys")]).await.unwrap();
    assert_eq!(answer.status(), 401);
    process
}

#[tokio::test]
async fn the_access_log_names_user_cluster_verb_resource_and_side() {
    let process = logged("-v=4").await;
    let next = || loop {
        let line = process.line("request done");
        if line["resource"] != "/readyz" {
            return ["user", "cluster", "verb", "resource", "code", "side"].map(|field| line[field].clone());
        }
    };
    assert_eq!(serde_json::json!(next()), serde_json::json!(["admin", "away", "get", "pods/log", 503, "member"]));
    let stranger = serde_json::json!(["", "", "list", "clustergateways.cluster.core.oam.dev", 401, "caller"]);
    assert_eq!(serde_json::json!(next()), stranger);
}

#[tokio::test]
async fn each_failed_request_has_a_line_that_says_all_and_a_flood_of_them_a_few() {
    let process = logged_after("--log-level=info", 25).await;
    process.process.signal("TERM");
    let (mut failed, mut others) = (Vec::new(), Vec::new());
    loop {
        let line: serde_json::Value = serde_json::from_str(&process.process.text_with("{")).unwrap();
        match line["message"].as_str() {
            Some("request failed") => failed.push(line),
            Some("shutting down") => break,
            _ => others.push(line),
        }
    }
    assert_eq!(failed.len(), 20, "{failed:?}");
    let fields = ["level", "user", "cluster", "verb", "resource", "code", "side", "suppressed"];
    let said: Vec<_> = fields.map(|field| failed[0][field].clone()).into();
    assert_eq!(
        serde_json::json!(said),
        serde_json::json!(["WARN", "admin", "away", "get", "pods/log", 503, "member", 0])
    );
    assert!(failed[0]["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < 60.0), "{}", failed[0]);
    assert!(failed[0]["error"].as_str().is_some_and(|error| error.contains("dial tcp")), "{}", failed[0]);
    let again = others.iter().filter(|line| line.to_string().contains("away") && line["level"] == "WARN");
    assert_eq!(again.count(), 0, "said twice: {others:?}");
}

/// The next line about a failed request: its fields, and its error.
fn failed(process: &LoggedProcess) -> (serde_json::Value, String) {
    let line = process.line("request failed");
    let fields = ["level", "user", "cluster", "verb", "resource", "code", "side"].map(|field| line[field].clone());
    (serde_json::json!(fields), line["error"].as_str().unwrap_or_default().to_owned())
}

/// A gateway with the cluster `c`, which is `member`, and a connection to it.
async fn serving(member: &FakeMember, flags: &[&str], options: H2Options) -> (Running, H2Connection) {
    let directory = tempfile::tempdir().unwrap();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "c", "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"}},
        "stringData": {"endpoint": member.url(), "token": "t", "ca.crt": member.ca_pem()},
    });
    std::fs::write(directory.path().join("c.json"), secret.to_string()).unwrap();
    let process = Running::start_by(command(), directory, flags);
    let client = Client::new(process.address(), Trust::Authority(&process.authority), None).h2_options(options);
    let connection = client.h2().await.unwrap();
    let ready = async || connection.get("/readyz", &[]).await.is_ok_and(|answer| answer.status() == 200);
    becomes(WAIT, "the cluster to be read", ready).await;
    (process, connection)
}

const ADMIN: [(&str, &str); 1] = [("authorization", "Bearer admin-token")];
/// A user with limits, unlike those of `system:masters`.
const OTHER: [(&str, &str); 1] = [("authorization", "Bearer other-token")];
const WATCH: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c/proxy/api/v1/pods?watch=true";

#[tokio::test]
async fn the_usual_log_has_what_a_limit_refused_and_what_was_cut_off() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let mut streams = member.streams("/api/v1/pods");
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().join("audit.log");
    let log = format!("--audit-log-path={}", audit.display());
    let policy = directory.path().join("policy.yaml");
    std::fs::write(&policy, "rules: [{users: [other], clusters: [c], verbs: [get]}]").unwrap();
    let policy = format!("--standalone-policy={}", policy.display());
    let flags = ["--max-long-requests-per-user=1", log.as_str(), policy.as_str()];
    let (running, connection) = serving(&member, &flags, H2Options::default()).await;
    let (answer, (_, stream)) = tokio::join!(connection.get(WATCH, &OTHER), streams.next());
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 200);
    let refused = connection.get(WATCH, &OTHER).await.unwrap();
    assert_eq!(refused.status(), 429);
    let (said, error) = failed(&running.process);
    assert_eq!(said, serde_json::json!(["WARN", "other", "c", "watch", "pods", 429, "gateway"]));
    assert!(error.contains("in flight for user \"other\""), "{error}");
    assert!(stream.abort().await);
    assert!(answer.body.to_end().await.is_err(), "a watch that was cut off looks whole");
    let (said, error) = failed(&running.process);
    assert_eq!(said, serde_json::json!(["WARN", "other", "c", "watch", "pods", 200, "member"]));
    assert!(error.contains("the member's response was cut off"), "{error}");
    // Load balancers cut idle watches: the alerts on failures must not fire.
    let metrics = connection.get("/metrics", &ADMIN).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("cluster_gateway_cut_responses_total{side=\"member\"} 1\n"), "{metrics}");
    assert!(!metrics.contains("cluster_gateway_failures_total{side=\"member\"}"), "{metrics}");
    let sides = async || {
        let events = std::fs::read_to_string(&audit).unwrap_or_default();
        let sides = events.lines().filter(|event| event.contains("ResponseComplete")).map(side_of);
        sides.filter(|side| !side.is_null()).collect::<Vec<_>>() == ["gateway", "member"]
    };
    becomes(WAIT, "the sides in the audit log", sides).await;
}

/// The side that failed, in a line of the audit log.
fn side_of(line: &str) -> serde_json::Value {
    let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    event["annotations"]["cluster.core.oam.dev/side"].clone()
}

/// The head of a response is sent before the gateway holds too much of the rest.
#[tokio::test]
async fn the_usual_log_has_what_was_cut_off_for_the_bytes_that_it_held() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/api/v1/pods", |_| Reply::full(200, &[], vec![b'x'; 4 << 20]));
    let narrow = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let (running, connection) = serving(&member, &["--max-held-bytes=4Mi"], narrow).await;
    let target = WATCH.trim_end_matches("?watch=true");
    let mut unread = Vec::new();
    for _ in 0..16 {
        unread.push(connection.get(target, &ADMIN).await.unwrap());
    }
    assert!(unread.iter().any(|answer| answer.status() == 200));
    // Those that come late are refused with 429 instead.
    let (said, error) = std::iter::repeat_with(|| failed(&running.process)).find(|(said, _)| said[5] == 200).unwrap();
    assert_eq!(said, serde_json::json!(["WARN", "admin", "c", "list", "pods", 200, "gateway"]));
    assert!(error.contains("holds too many bytes"), "{error}");
}

/// Neither a caller that leaves nor an administrator who deletes a cluster has to look at the log.
#[tokio::test]
async fn the_usual_log_does_not_have_what_people_ended() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let mut streams = member.streams("/api/v1/pods");
    let (running, connection) = serving(&member, &[], H2Options::default()).await;
    let (answer, (_, stream)) = tokio::join!(connection.get(WATCH, &ADMIN), streams.next());
    drop(answer.unwrap());
    stream.gone().await;
    let (answer, (_, _stream)) = tokio::join!(connection.get(WATCH, &ADMIN), streams.next());
    std::fs::remove_file(running.directory.path().join("c.json")).unwrap();
    let _ = answer.unwrap().body.to_end().await; // it may end in any way
    running.process.signal("TERM");
    loop {
        let line = running.process.text_with("{");
        assert!(!line.contains("request failed"), "{line}");
        if line.contains("shutting down") {
            break;
        }
    }
}
