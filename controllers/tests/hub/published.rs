//! `ClusterProfiles` of registered clusters, and the SIG's own client, which finds members by them.

mod troubled;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::promtool;
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::tools::{self, Tool};
use hub_tests::{turns, wait};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Running, SOON, apply, event, namespace, profile_kind, test, versions, wait_end};

/// The namespace in which the testbed's gateway reads clusters.
const CLUSTERS: &str = "vela-system";
/// One test's clusters come and go, which the other would take for writes without a reason.
const ALONE: &str = "clusters that are published";
const WRITES: &str = "cluster_gateway_controllers_cluster_profile_writes_total";
/// Namespaces of the SIG's client: one with its profiles, one with the Secrets of its tokens.
const FLEET: &str = "published-fleet";
const CONSUMER: &str = "published-consumer";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "published: a profile's life, and another manager's beside it", life),
        test(fixture, "published: the SIG's own client lists pods of a member through the gateway", client),
        test(fixture, "published: probes go as the token in a file, and as no other", token_file),
        test(fixture, "published: each call of a hub in trouble fails once", troubled::outlived),
    ]
}

/// Flags to publish into `place`, with the gateway's own address.
fn flags(testbed: &Testbed, place: &str) -> Vec<String> {
    vec![
        "--enable=clusterprofile".to_owned(),
        format!("--clusterprofile-namespaces={place}"),
        format!("--gateway-url=https://{}", testbed.gateway.address()),
        format!("--gateway-ca-file={}", testbed.gateway.authority_file().display()),
    ]
}

/// Starts controllers that publish clusters into `place`. They hold no Lease, because those of
/// other tests run in the same namespace.
fn publishing(testbed: &Testbed, place: &str, clusters: &str) -> Result<Running> {
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place)])?;
    let mut flags = flags(testbed, place);
    flags.push("--leader-elect=false".to_owned());
    Running::start(testbed, clusters, &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn profile(testbed: &Testbed, place: &str, name: &str) -> Result<Value> {
    let profile = testbed.hub.server.read(&format!("clusterprofiles.multicluster.x-k8s.io {name} -n {place}"))?;
    ensure!(!profile.is_null(), "no profile {place}/{name}");
    Ok(profile)
}

fn condition(testbed: &Testbed, place: &str, name: &str, status: &str) -> Result<Value> {
    wait::until(&format!("ControlPlaneHealthy={status} of {name}"), SOON, || {
        let profile = profile(testbed, place, name)?;
        let condition = &profile["status"]["conditions"][0];
        ensure!(condition["type"] == "ControlPlaneHealthy" && condition["status"] == status, "{profile}");
        Ok(condition.clone())
    })
}

/// Registers a cluster with a Secret written by hand: the testbed's gateway serves [`CLUSTERS`]
/// only.
fn registered(testbed: &Testbed, name: &str, labels: &Value) -> Result<()> {
    let mut secret = hub_tests::hub::MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    if name.ends_with("-away") {
        secret = secret.at("https://127.0.0.1:1");
    }
    let mut document = secret.document(name);
    let own = document["metadata"]["labels"].as_object_mut().context("labels")?;
    own.extend(labels.as_object().cloned().unwrap_or_default());
    document["metadata"]["annotations"] = json!({"cluster.core.oam.dev/cluster-alias": format!("alias of {name}")});
    apply(testbed, &[document])
}

fn life(testbed: &Testbed) -> Result<()> {
    let _alone = turns::alone(&[ALONE]);
    let (place, name) = ("published-life", "published-one");
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place)])?;
    let other = |name: &str| {
        json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": name, "namespace": place,
                "labels": {"x-k8s.io/cluster-manager": "open-cluster-management"}},
            "spec": {"displayName": "theirs", "clusterManager": {"name": "open-cluster-management"}}})
    };
    apply(testbed, &[other("published-taken"), other("published-stranger")])?;
    let labels = json!({"topology.kubernetes.io/region": "north", "multicluster.x-k8s.io/clusterset": "eu"});
    registered(testbed, name, &labels)?;
    for name in ["published-taken", "published-away"] {
        registered(testbed, name, &json!({}))?;
    }
    let mut controllers = publishing(testbed, place, CLUSTERS)?;
    let healthy = condition(testbed, place, name, "True")?;
    ensure!(healthy["reason"] == "Healthy", "{healthy}");
    let told = profile(testbed, place, name)?;
    let server = format!("https://{}{}", testbed.gateway.address(), Testbed::proxy_path(name));
    ensure!(told["status"]["accessProviders"][0]["name"] == "cluster-gateway", "{told}");
    ensure!(told["status"]["accessProviders"][0]["cluster"]["server"] == server.as_str(), "{told}");
    ensure!(
        told["spec"]
            == json!({"clusterManager": {"name": "cluster-gateway"}, "displayName": format!("alias of {name}")})
    );
    ensure!(told["metadata"]["labels"]["multicluster.x-k8s.io/clusterset"] == "eu", "{told}");
    let member = &testbed.member.server;
    let version = member.client(Some(member.admin())).get("/version", &[])?.json()?;
    ensure!(told["status"]["version"]["kubernetes"] == version["gitVersion"], "{told}");
    let region = json!({"name": "region", "value": "north"});
    ensure!(told["status"]["properties"].as_array().is_some_and(|all| all.contains(&region)), "{told}");
    // A member that does not answer, after the second probe.
    let away = condition(testbed, place, "published-away", "False")?;
    ensure!(
        away["reason"] == "Unreachable" && away["message"].as_str().is_some_and(|why| why.contains("member")),
        "{away}"
    );
    // A profile of another manager.
    ensure!(profile(testbed, place, "published-taken")?["spec"]["displayName"] == "theirs");
    wait::until("an Event", SOON, || event(testbed, CLUSTERS, "published-taken", "ProfileNameTaken"))?;
    ensure!(controllers.metric("cluster_gateway_controllers_cluster_profiles", "taken")? >= 1.0);
    promtool::evaluated(&controllers.metrics()?, &["ClusterGatewayProfilesFail"])?;
    still(testbed, place, &mut controllers)?;
    // Once the name is free, it becomes ours. A new alias is published at once.
    testbed.hub.server.delete(&format!("clusterprofile published-taken -n {place}"))?;
    condition(testbed, place, "published-taken", "True")?;
    testbed.hub.server.annotate(&format!("secret {name} -n {CLUSTERS} cluster.core.oam.dev/cluster-alias=new"))?;
    wait::until_true("the new alias", SOON, || Ok(profile(testbed, place, name)?["spec"]["displayName"] == "new"))?;
    // Our profiles are gone with their clusters, and no others.
    testbed.hub.server.delete(&format!("secret {name} published-taken published-away -n {CLUSTERS}"))?;
    for name in [name, "published-taken", "published-away"] {
        wait_end(&testbed.hub.server, &format!("clusterprofile {name} -n {place}"))?;
    }
    ensure!(profile(testbed, place, "published-stranger")?["spec"]["displayName"] == "theirs");
    Ok(())
}

/// After a restart, nothing is written again.
fn still(testbed: &Testbed, place: &str, controllers: &mut Running) -> Result<()> {
    let line = format!("clusterprofiles -n {place} -l x-k8s.io/cluster-manager=cluster-gateway");
    let versions = || versions(&testbed.hub.server, &line);
    let before = versions()?;
    ensure!(before.iter().any(|one| one.contains("/published-one=")), "{before:?}");
    controllers.restart()?;
    let probes = |outcome: &str| controllers.metric("cluster_gateway_controllers_cluster_probes_total", outcome);
    wait::until_true("the members to be probed again", SOON, || {
        Ok(probes("\"healthy\"")? >= 2.0 && probes("unreachable")? >= 2.0)
    })?;
    let (writes, after) = (controllers.metric(WRITES, "")?, versions()?);
    // Other tests register clusters meanwhile, which are published here, too.
    let is_same = before.iter().all(|one| after.contains(one));
    ensure!(is_same, "{writes} writes: {before:?} became {after:?}");
    Ok(())
}

/// The controllers' own credential is the administrator's: with it, all members would be healthy.
fn token_file(testbed: &Testbed) -> Result<()> {
    let place = "published-probed";
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place)])?;
    let file = testbed.directory("published")?.join("prober.token");
    std::fs::write(&file, testbed.hub.server.service_account_token("default", "published-prober")?)?;
    let mut flags = flags(testbed, place);
    flags.extend(["--leader-elect=false".to_owned(), format!("--gateway-token-file={}", file.display())]);
    let mut controllers = Running::start(testbed, CLUSTERS, &flags.iter().map(String::as_str).collect::<Vec<_>>())?;
    let probes = |outcome: &str| controllers.metric("cluster_gateway_controllers_cluster_probes_total", outcome);
    wait::until_true("a probe without the right", SOON, || Ok(probes("not_probed")? >= 1.0))?;
    ensure!(probes("\"healthy\"")? == 0.0, "somebody else's credential is sent");
    let told = condition(testbed, place, CLUSTER, "Unknown")?;
    ensure!(told["reason"] == "NotProbed", "{told}");
    // Another user, so that no cached review of the first one applies.
    std::fs::write(&file, testbed.hub.create_user("published-prober-let", &[CLUSTER], &["get"])?)?;
    controllers.restart()?;
    let healthy = condition(testbed, place, CLUSTER, "True")?;
    ensure!(healthy["reason"] == "Healthy", "{healthy}");
    Ok(())
}

/// A kubeconfig of the hub's administrator with a default namespace: the SIG's plugin reads Secrets
/// there.
fn consumer(testbed: &Testbed, directory: &Path) -> Result<PathBuf> {
    let own = std::fs::read_to_string(testbed.hub.server.kubectl().kubeconfig)?;
    let mut kubeconfig: Value = serde_json::from_str(&own)?;
    kubeconfig["contexts"][0]["context"]["namespace"] = CONSUMER.into();
    let file = directory.join("consumer.kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    Ok(file)
}

/// Runs the SIG's example, with a provider that runs `exec`.
fn example(testbed: &Testbed, directory: &Path, exec: &Value) -> Result<Output> {
    let providers = directory.join("providers.json");
    std::fs::write(&providers, json!({"providers": [{"name": "cluster-gateway", "execConfig": exec}]}).to_string())?;
    let program = Kubectl {
        binary: tools::provide(Tool::InventoryExample)?,
        kubeconfig: consumer(testbed, directory)?,
        cache: directory.to_path_buf(),
    };
    let providers = format!("-clusterprofile-provider-file={}", providers.display());
    let place = format!("-namespace={FLEET}");
    program.args([providers.as_str(), place.as_str(), "-clusterprofile", CLUSTER]).run()
}

fn token(testbed: &Testbed, token: &str) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": CLUSTER, "namespace": CONSUMER},
        "stringData": {"token": token}});
    apply(testbed, &[secret])
}

fn client(testbed: &Testbed) -> Result<()> {
    let _controllers = publishing(testbed, FLEET, CLUSTERS)?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "published", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "none"}]}});
    testbed.member.server.apply(&[pod])?;
    apply(testbed, &[namespace(CONSUMER)])?;
    condition(testbed, FLEET, CLUSTER, "True")?;
    let directory = testbed.directory("published")?;
    let plugin = |command: &Path, args: &[String]| {
        json!({"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": args,
            "provideClusterInfo": true})
    };
    // The SIG's plugin finds the token by the cluster's name, which is in the profile.
    let reader = plugin(&tools::provide(Tool::SecretReader)?, &[]);
    token(testbed, &testbed.token)?;
    let listed = |exec: &Value| -> Result<()> {
        let output = example(testbed, &directory, exec)?;
        for client in ["client-go", "controller-runtime"] {
            ensure!(output.stderr.contains(&format!("[{client}] pod: default/published")), "{output:?}");
        }
        ensure!(output.status == 0, "{output:?}");
        Ok(())
    };
    listed(&reader)?;
    // Our plugin, with a token in a file.
    let file = directory.join("token");
    std::fs::write(&file, &testbed.token)?;
    let program = Path::new(env!("CARGO_BIN_EXE_cluster-gateway-controllers"));
    listed(&plugin(program, &["credential".to_owned(), format!("--token-file={}", file.display())]))?;
    // A caller without the right on the hub gets the hub's refusal, and the member gets no request.
    token(testbed, &testbed.hub.server.service_account_token("default", "published-nobody")?)?;
    let output = example(testbed, &directory, &reader)?;
    ensure!(output.status != 0 && !output.stderr.contains("published\""), "{output:?}");
    for part in ["forbidden", "system:serviceaccount:default:published-nobody", "clustergateways/proxy"] {
        ensure!(output.stderr.contains(part), "{part}: {output:?}");
    }
    Ok(())
}
