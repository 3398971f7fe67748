//! `probe`, `check` and `rotate`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::tunnel::CLUSTER_TUNNEL;
use hub_tests::{load, ports, wait};
use kit::pki::{Authority, Leaf};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{
    Fixture, account, alone_with_agents, beside, clusters, clusters_as, ended, is_void, joining, member, registered,
    test, tokens,
};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "probe::the hop that fails is named, with its remedy", hops),
        test(fixture, "check::hub and clusters are looked at, and what is wrong has a remedy", checked),
        test(fixture, "rotate::by the member's own context, if one is called as the cluster", by_context),
        test(fixture, "rotate::a new token takes the place of the old, and no request fails", rotated),
        test(fixture, "rotate::a new token that the member refuses gives the old one its place back", put_back),
    ]
}

fn hops(testbed: &Testbed) -> Result<()> {
    testbed.tunnelled()?;
    let program = clusters(testbed);
    let good = ended(&program, &format!("probe {CLUSTER}"), 0)?.stdout;
    let names = |text: &str| {
        text.lines()
            .filter_map(|line| line.strip_prefix("✓ ")?.split(' ').next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    ensure!(
        names(&good) == ["hub", "gateway", "registration", "member", "credential"]
            && good.contains("accepted, as system:serviceaccount:default:gateway"),
        "{good}"
    );
    let tunnelled = ended(&program, &format!("probe {CLUSTER_TUNNEL}"), 0)?.stdout;
    ensure!(
        names(&tunnelled)
            == ["hub", "gateway", "registration", "tunnel-server", "tunnel-agent", "member", "credential"],
        "{tunnelled}"
    );
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member("probe-dead", &member.clone().at(&dead))?;
    testbed.hub.register_member("probe-unlinked", &member.behind_tunnel())?;
    testbed.hub.register_member("probe-refused", &MemberSecret::with_token(&testbed.member.server, "no-such-token"))?;
    let ends = |name: &str, hop: &str, remedy: &str| -> Result<()> {
        let told = ended(&program, &format!("probe {name}"), 1)?;
        ensure!(
            told.stdout.contains(&format!("✗ {hop} ")) && told.stderr.contains(&format!("fails at the {hop}")),
            "{told:?}"
        );
        ensure!(told.stderr.contains("remedy: ") && told.stderr.contains(remedy), "{told:?}");
        testbed.hub.forget_member(name).or_else(|error| if name == "probe-absent" { Ok(()) } else { Err(error) })
    };
    ends("probe-dead", "member", "whether the member answers")?;
    ends("probe-unlinked", "tunnel-agent", "tunnel-agent runs")?;
    ends("probe-refused", "credential", "credential")?;
    ends("probe-absent", "registration", "kubectl")
}

fn checked(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let text = ended(&program, &format!("check {CLUSTER}"), 0)?.stdout;
    for part in [
        "hub\n  ✓ it answers",
        "✓ APIService v1alpha1.cluster.core.oam.dev: available",
        "✓ the CA of the gateway's certificate",
        "✓ the hub's front-proxy CA",
        "✓ you may list clustergateways",
        "gateway\n  ‼ no Deployment",
        &format!("✓ {CLUSTER}: Kubernetes v1."),
        "0 failed",
    ] {
        ensure!(text.contains(part), "{part}: {text}");
    }
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member(
        "check-dead",
        &MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&dead),
    )?;
    let bad = ended(&program, "check", 1)?.stdout;
    ensure!(
        bad.contains("✗ check-dead: Unreachable: ")
            && bad.contains("remedy: check whether the member answers")
            && bad.contains("probe check-dead"),
        "{bad}"
    );
    let document: Value = serde_json::from_str(&ended(&program, "check check-dead -o json", 1)?.stdout)?;
    let last = document["sections"].as_array().and_then(|all| all.last()).context("sections")?;
    ensure!(last["name"] == "clusters" && last["findings"][0]["mark"] == "bad", "{document}");
    testbed.hub.forget_member("check-dead")?;
    let absent = ended(&program, "check check-absent", 1)?.stdout;
    ensure!(absent.contains("✗ check-absent is not registered"), "{absent}");
    deployed(testbed)
}

/// What `check` says of what a chart installs.
const OF_A_CHART: [&str; 13] = [
    "✓ Deployment gateway: 2 of 2 replicas are ready",
    "✓ the gateway's serving certificate expires in 36",
    "✓ the gateway may create tokenreviews.authentication.k8s.io",
    "✓ the gateway may watch secrets in",
    "tunnel\n  ‼ Deployment tunnel-server: 1 of 2 replicas are ready\n    remedy: see `kubectl -n ",
    "✓ the gateway's certificate for tunnel-servers expires in",
    "✓ the tunnel-servers' CA for gateways expires in",
    "✓ the tunnel-servers may create tokenreviews.authentication.k8s.io",
    "✓ the tunnel-servers may create subjectaccessreviews.authorization.k8s.io",
    "controllers\n  ✓ Deployment controllers: 2 of 2 replicas are ready\n",
    "clusters\n  ✗ munich: CredentialRefused: ",
    "remedy: `kubectl clusters rotate munich --member-context …`",
    "1 failed, 1 warning",
];
/// The same with expired certificates, and without rights.
const OF_ITS_RUIN: [&str; 13] = [
    "✗ Deployment gateway: 0 of 2 replicas are ready",
    "‼ Deployment gateway is of version 0.0.1, older than this program",
    "✗ the gateway's serving certificate has expired",
    "✗ the gateway's certificate for tunnel-servers has expired",
    "✗ the gateway's CA for tunnel-servers has expired",
    "✗ the tunnel-servers' certificate for gateways has expired",
    "✗ the tunnel-servers' CA for gateways has expired",
    "✗ the gateway may not list secrets in",
    "✗ the tunnel-servers may not create tokenreviews.authentication.k8s.io\n    remedy: `kubectl clusters install` again, or `helm upgrade` the chart",
    "✗ the tunnel-servers may not create subjectaccessreviews.authorization.k8s.io",
    "✗ Deployment controllers: 0 of 2 replicas are ready\n    remedy: see `kubectl -n ",
    "‼ Deployment controllers is of version 0.0.1, older than this program",
    "remedy: `kubectl clusters install` again, or `helm upgrade` the chart",
];

/// Checks what a chart installs: Deployments behind the Service, and for the tunnel.
fn deployed(testbed: &Testbed) -> Result<()> {
    let _alone = alone_with_agents();
    let (program, hub) = (clusters(testbed), &testbed.hub.server);
    let selector = json!({"spec": {"selector": {"app": "gateway"}}});
    hub.patch(&format!("service gateway -n {SECRET_NAMESPACE}"), &selector)?;
    let serving = |leaf: &Leaf| -> Result<()> {
        let pair = Authority::new("cli-serving").issue(leaf);
        let metadata = json!({"name": "cli-serving", "namespace": SECRET_NAMESPACE});
        hub.delete(&format!("secret cli-serving -n {SECRET_NAMESPACE} --ignore-not-found"))?;
        hub.create(&[json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata,
            "stringData": {"tls.crt": pair.chain_pem, "tls.key": pair.key_pem}})])
    };
    let told = |name: &str, container: &str, ready: i32, version: &str| -> Result<()> {
        hub.put(&deployment(name, container, version))?;
        // No controller of this hub changes the status back.
        let status = json!({"status": {"replicas": 2, "readyReplicas": ready}});
        hub.patch(&format!("deployment {name} -n {SECRET_NAMESPACE} --subresource=status"), &status).map(drop)
    };
    serving(&Leaf::server("gateway"))?;
    told("gateway", "cluster-gateway", 2, env!("CARGO_PKG_VERSION"))?;
    told("tunnel-server", "tunnel-server", 1, env!("CARGO_PKG_VERSION"))?;
    told("controllers", "cluster-gateway-controllers", 2, env!("CARGO_PKG_VERSION"))?;
    testbed.hub.register_member("munich", &MemberSecret::with_token(&testbed.member.server, "no-such-token"))?;
    let checked = ended(&program, "check munich", 1)?.stdout;
    for part in OF_A_CHART {
        ensure!(checked.contains(part), "{part}: {checked}");
    }
    testbed.hub.forget_member("munich")?;
    // Of an age that this program was not made for; and programs that lost their rights.
    told("gateway", "cluster-gateway", 0, "0.0.1")?;
    told("controllers", "cluster-gateway-controllers", 0, "0.0.1")?;
    serving(&Leaf::server("gateway").expired())?;
    hub.create(&[account(SECRET_NAMESPACE, "cli-powerless")])?;
    let powerless = json!({"spec": {"template": {"spec": {"serviceAccountName": "cli-powerless"}}}});
    for name in ["gateway", "tunnel-server"] {
        hub.patch(&format!("deployment {name} -n {SECRET_NAMESPACE}"), &powerless)?;
    }
    let bad = ended(&program, &format!("check {CLUSTER}"), 1)?.stdout;
    for part in OF_ITS_RUIN {
        ensure!(bad.contains(part), "{part}: {bad}");
    }
    aged(testbed)?;
    hub.delete(&format!("deployment gateway tunnel-server controllers -n {SECRET_NAMESPACE}"))?;
    hub.delete(&format!("secret cli-serving -n {SECRET_NAMESPACE}"))
}

/// A Deployment like the chart's, with one Secret for all its files.
fn deployment(name: &str, container: &str, version: &str) -> Value {
    let flags = match container {
        "tunnel-server" => &["--frontend-tls-cert-file", "--frontend-client-ca-file"][..],
        "cluster-gateway" => &["--proxy-cert", "--proxy-ca-cert"],
        _ => &[],
    };
    let files = flags.iter().chain(&["--tls-cert-file"]).map(|flag| format!("{flag}=/etc/tls/tls.crt"));
    let args: Vec<_> = files.chain([format!("--secret-namespace={SECRET_NAMESPACE}")]).collect();
    let mounts = json!([{"name": "tls", "mountPath": "/etc/tls"}]);
    let containers = json!([{"name": container, "image": "none", "args": args, "volumeMounts": mounts}]);
    let volumes = json!([{"name": "tls", "secret": {"secretName": "cli-serving"}}]);
    let pod = json!({"serviceAccountName": "gateway", "containers": containers, "volumes": volumes});
    let pod = json!({"metadata": {"labels": {"app": name}}, "spec": pod});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": pod});
    let metadata = json!({"name": name, "namespace": SECRET_NAMESPACE,
        "labels": {"app.kubernetes.io/version": version}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

/// `join` also warns of the old gateway, before anything else.
fn aged(testbed: &Testbed) -> Result<()> {
    let (program, joining) = (clusters(testbed), joining(testbed));
    let line = format!("join visby {joining} --rights view --account-namespace cli-visby");
    let told = ended(&program, &line, 0)?.stderr;
    let warned = "warning: Deployment gateway is of version 0.0.1, older than this program";
    ensure!(
        told.starts_with(warned)
            && told.contains("\nremedy: `kubectl clusters install` again, or `helm upgrade` the chart"),
        "{told}"
    );
    ended(&program, &format!("detach visby {} --yes", member(testbed)), 0).map(drop)
}

/// The registered credential may only read. A person with a context for the member need not name
/// it.
fn by_context(testbed: &Testbed) -> Result<()> {
    let own = clusters_as(testbed, &beside(testbed, "tartu", &testbed.member.server)?);
    let url = testbed.member.server.url();
    ended(&own, &format!("join tartu --rights view --account-namespace cli-tartu --endpoint {url}"), 0)?;
    let rotated = ended(&own, "rotate tartu --grace 1s", 0)?;
    ensure!(
        rotated.stderr.starts_with("Using your context tartu for the member\n")
            && rotated.stdout.contains("1 old token ended"),
        "{rotated:?}"
    );
    // A context of that name that leads elsewhere is not used. The command uses the registered
    // credential.
    let elsewhere = clusters_as(testbed, &beside(testbed, "tartu", &testbed.hub.server)?);
    for (line, program) in
        [("rotate tartu", &elsewhere), ("detach tartu --yes", &elsewhere), ("rotate tartu", &clusters(testbed))]
    {
        let told = ended(program, line, 1)?.stderr;
        ensure!(!told.contains("Acting on") && told.contains("is forbidden"), "{line}: {told}");
        ensure!(told.contains("remedy: use a context of the member") && told.contains("--member-context"), "{told}");
    }
    ended(&own, "detach tartu --yes", 0)?;
    wait::until_true("the member to be as it was", LIMIT, || {
        let left = testbed.member.server.names("namespaces,clusterrolebindings")?;
        Ok(!left.iter().any(|name| name.contains("tartu")))
    })
}

fn rotated(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let server = &testbed.member.server;
    let joining = joining(testbed);
    ended(&program, &format!("join bern {joining} --rights cluster-admin --account-namespace cli-bern"), 0)?;
    let token = |secrets: &[String]| -> Result<String> {
        let [secret] = secrets else { bail!("{secrets:?}") };
        server.secret(&format!("{secret} -n cli-bern"), "token")
    };
    let before = tokens(server, "cli-bern")?;
    let old = token(&before)?;
    let path = format!("{}/api/v1/namespaces", Testbed::proxy_path("bern"));
    let rotated = load::beside(&testbed.hub.server, &path, || {
        let rotated = ended(&program, "rotate bern --grace 2s", 0)?;
        // API servers remember for seconds that a token was valid.
        wait::until_true("the old token to be void", LIMIT, || is_void(server, &old))?;
        Ok(rotated)
    })?;
    ensure!(rotated.stdout.contains("rotated, 1 old token ended"), "{rotated:?}");
    let after = tokens(server, "cli-bern")?;
    ensure!(after != before, "{before:?} {after:?}");
    ensure!(registered(&testbed.hub.server, "bern")? == token(&after)?, "the new token is not the registered one");
    ended(&program, "get namespaces bern", 0)?;
    let foreign = ended(&program, &format!("rotate {CLUSTER}"), 2)?.stderr;
    ensure!(foreign.contains("`join` did not register"), "{foreign}");
    // The credential has all rights, also the right to revoke itself.
    ended(&program, "detach bern --yes", 0)?;
    wait::until_true("the member to be as it was", LIMIT, || {
        let left = testbed.member.server.names("namespaces,clusterrolebindings")?;
        Ok(!left.iter().any(|name| name.contains("bern")))
    })
}

/// The new token is revoked on the member before the gateway was seen to use it.
fn put_back(testbed: &Testbed) -> Result<()> {
    let (program, server) = (clusters(testbed), &testbed.member.server);
    let (member, joining) = (member(testbed), joining(testbed));
    ended(&program, &format!("join brest {joining} --rights view --account-namespace cli-brest"), 0)?;
    let tokens = || tokens(server, "cli-brest");
    let registered = || registered(&testbed.hub.server, "brest");
    let (before, old) = (tokens()?, registered()?);
    let told = std::thread::scope(|scope| -> Result<String> {
        let rotated = scope.spawn(|| ended(&program, &format!("rotate brest {member} --grace 15s"), 1));
        wait::until_true("the new token to be registered", LIMIT, || Ok(registered()? != old))?;
        let new = registered()?;
        for secret in tokens()?.iter().filter(|secret| !before.contains(secret)) {
            server.delete(&format!("secret {secret} -n cli-brest"))?;
        }
        wait::until_true("the new token to be void", LIMIT, || is_void(server, &new))?;
        Ok(rotated.join().expect("no panic")?.stderr)
    })?;
    ensure!(
        told.contains("nothing was revoked, and the old token is registered again: the new token does not work: ")
            && told.contains("rejected the registered credential")
            && told.contains("remedy: "),
        "{told}"
    );
    ensure!(registered()? == old && tokens()? == before, "{before:?} {:?}", tokens()?);
    wait::until("the cluster to answer with the old token", LIMIT, || ended(&program, "get pods brest", 0))?;
    let again = ended(&program, &format!("rotate brest {member} --grace 1s"), 0)?.stdout;
    ensure!(again.contains("brest: rotated, 1 old token ended") && registered()? != old, "{again}");
    ended(&program, "get pods brest", 0)?;
    ended(&program, &format!("detach brest {member} --yes"), 0).map(drop)
}
