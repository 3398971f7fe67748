//! What must hold for all renderings of the charts, whatever the values.

mod pairs;
mod rights;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gateway::args::{self, Config};
use hub_tests::helm::{Chart, Helm};
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use self::rights::controllers_verbs;
use crate::fixture::{Fixture, rendering};
use crate::matrix::{self, BRINGS, ELSEWHERE, EXTRA};

/// The gateway's program and its container.
const GATEWAY: &str = "cluster-gateway";
/// Other tests start it as the chart does.
const CONTROLLERS: &str = "cluster-gateway-controllers";
/// All of them, in the order of their names.
const PROGRAMS: [&str; 4] = [GATEWAY, CONTROLLERS, "tunnel-agent", "tunnel-server"];

/// The objects of one rendering.
struct Objects<'a> {
    all: &'a [Value],
    case: &'a str,
    chart: Chart,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        rendering(fixture, "invariants::the hub always verifies the gateway", |helm, path| each(helm, path, verified)),
        rendering(fixture, "invariants::the gateway may do what it needs and no more", |helm, path| {
            each(helm, path, least_rights)
        }),
        rendering(
            fixture,
            "invariants::the tunnel's ends know each other, and agents are no gateways",
            |helm, path| each(helm, path, pairs::check),
        ),
        rendering(
            fixture,
            "invariants::the container is locked down, probed, spread, and has time to drain",
            |helm, path| each(helm, path, container),
        ),
        rendering(fixture, "invariants::names, ports and labels refer to what is there", |helm, path| {
            each(helm, path, references)
        }),
        rendering(fixture, "invariants::each program takes its arguments", |helm, path| {
            let mut told = BTreeSet::new();
            each(helm, path, |objects| arguments(objects, &mut told))?;
            ensure!(told.iter().map(String::as_str).eq(PROGRAMS), "extraArgs are tried with {told:?} alone");
            Ok(())
        }),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a test")]
fn each(helm: &Helm, directory: PathBuf, mut check: impl FnMut(&Objects<'_>) -> Result<()>) -> Result<()> {
    for (case, all) in matrix::rendered(helm, &directory)? {
        check(&Objects { all, case: case.name, chart: case.chart })
            .with_context(|| format!("values: {}", case.name))?;
    }
    Ok(())
}

fn verified(objects: &Objects<'_>) -> Result<()> {
    let text = json!(objects.all).to_string();
    ensure!(!text.contains("insecureSkipTLSVerify"), "verification can be skipped");
    let Some(service) = objects.of("APIService").next() else {
        let is_expected = objects.case.contains("somebody else's") || objects.case == ELSEWHERE;
        ensure!(is_expected || objects.chart == Chart::Agent, "no APIService");
        return Ok(());
    };
    let name = service["spec"]["service"]["name"].as_str().context("no Service")?;
    let host = format!("{name}.vela-system.svc");
    let Some(bundle) = service["spec"]["caBundle"].as_str() else {
        let from = service["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].as_str().context("no CA")?;
        let certificate = objects.of("Certificate").find(|object| {
            object["metadata"]["name"] == from.trim_start_matches("vela-system/") && object["spec"]["isCA"] != true
        });
        let certificate = certificate.context("the CA is injected from a Certificate that is not there")?;
        let names = certificate["spec"]["dnsNames"].as_array().context("no names")?;
        ensure!(names.contains(&json!(host)), "a certificate for {names:?}");
        return Ok(());
    };
    ensure!(String::from_utf8(BASE64.decode(bundle)?)?.contains("-----BEGIN CERTIFICATE-----"), "no CA: {bundle}");
    let mut secrets = objects.of("Secret");
    let generated =
        secrets.find(|secret| secret["metadata"]["annotations"]["cluster.core.oam.dev/generated-for"] == host);
    ensure!(generated.is_none_or(|secret| has_value(&secret["data"], bundle)), "another CA than the generated one");
    Ok(())
}

/// Whether it is the role for writes of Karmada's clusters.
fn is_karmadas(role: &Value) -> bool {
    role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-karmada"))
}

/// The verbs of that role: the gateway must not write the Secrets that clusters refer to.
fn karmadas_verbs(case: &str, role: &Value) -> Result<Value> {
    ensure!(case == "dialects that register", "rights to write clusters: {role}");
    let is_referred = role["metadata"]["namespace"] == "karmada-cluster";
    Ok(if is_referred { json!(["get"]) } else { json!(["create", "update", "delete"]) })
}

fn least_rights(objects: &Objects<'_>) -> Result<()> {
    if joins(objects) {
        return rights_to_join(objects);
    }
    if objects.chart == Chart::Agent {
        let rights = objects.all.iter().find(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1");
        ensure!(rights.is_none(), "the agent has rights on the member: {rights:?}");
        let pod = &objects.workloads()?[0]["spec"]["template"]["spec"];
        ensure!(pod["automountServiceAccountToken"] == false, "and a token of it");
    }
    if objects.case == ELSEWHERE {
        return nothing_here(objects);
    }
    for role in objects.of("ClusterRole").chain(objects.of("Role")) {
        for rule in role["rules"].as_array().context("no rules")? {
            ensure!(!rule.to_string().contains('*'), "a wildcard: {rule}");
            if role["metadata"]["labels"]["app.kubernetes.io/name"] == CONTROLLERS {
                ensure!(rule["verbs"] == controllers_verbs(objects.case, role, rule)?, "{rule}");
                continue;
            }
            let expected = match (role["kind"].as_str(), rule["resources"][0].as_str()) {
                (Some("Role"), Some("secrets")) if is_karmadas(role) => karmadas_verbs(objects.case, role)?,
                (Some("Role"), Some("secrets")) if objects.case == "health" => {
                    ensure!(role["metadata"]["namespace"] == "clusters");
                    json!(["get", "list", "watch", "update"])
                }
                (Some("Role"), Some("secrets")) => {
                    apart(objects, &role["metadata"]["namespace"])?;
                    json!(["get", "list", "watch"])
                }
                (Some("ClusterRole"), Some("managedclusters")) if objects.case == "ocm" => {
                    json!(["get", "list", "watch"])
                }
                // To notice a withdrawn right to link.
                (Some("ClusterRole"), Some("clusterroles")) => {
                    ensure!(!objects.case.contains("without its roles"), "{rule}");
                    ensure!(rule["resources"] == json!(["clusterroles", "clusterrolebindings"]), "{rule}");
                    json!(["list", "watch"])
                }
                // For users, according to the values.
                (Some("ClusterRole"), Some("clustergateways/proxy")) => continue,
                // For agents, with one cluster each.
                (Some("ClusterRole"), Some("clustergateways/tunnel")) => {
                    let names = rule["resourceNames"].as_array().context("any cluster")?;
                    ensure!(names.len() == 1, "{rule}");
                    json!(["create"])
                }
                _ => bail!("a right that nobody needs: {role}"),
            };
            ensure!(rule["verbs"] == expected, "{rule}");
        }
    }
    let referred = objects.of("ClusterRoleBinding").chain(objects.of("RoleBinding")).map(|binding| {
        let (role, space) = (&binding["roleRef"]["name"], &binding["metadata"]["namespace"]);
        (role.as_str().unwrap_or_default(), space.as_str().unwrap_or_default())
    });
    for (role, namespace) in referred {
        let own = objects.of("Role").chain(objects.of("ClusterRole")).any(|object| object["metadata"]["name"] == role);
        let known = [("system:auth-delegator", ""), ("extension-apiserver-authentication-reader", "kube-system")];
        ensure!(own || known.contains(&(role, namespace)), "bound to {role} in {namespace:?}");
    }
    Ok(())
}

/// A release whose hub is another API server has no rights on this one, and no token of it.
fn nothing_here(objects: &Objects<'_>) -> Result<()> {
    let given = objects.all.iter().find(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1");
    ensure!(given.is_none() && objects.of("APIService").next().is_none(), "{given:?}");
    for deployment in objects.workloads()? {
        let pod = &deployment["spec"]["template"]["spec"];
        ensure!(pod["automountServiceAccountToken"] == false, "a token of this hub");
        let flag = flags(&pod["containers"][0]).find_map(|flag| flag.strip_prefix("--kubeconfig="));
        let mounts = pod["containers"][0]["volumeMounts"].as_array().context("no mounts")?;
        let at = |mount: &&Value| {
            mount["mountPath"].as_str().is_some_and(|path| flag == Some(&format!("{path}/kubeconfig")))
        };
        let volume = &mounts.iter().find(at).with_context(|| format!("{flag:?} is not there"))?["name"];
        let is_it = |one: &&Value| one["name"] == *volume && one["secret"]["secretName"] == "mine-kubeconfig";
        ensure!(pod["volumes"].as_array().is_some_and(|all| all.iter().any(|one| is_it(&one))), "{flag:?}");
    }
    Ok(())
}

/// Whether they are of an agent that joins by itself.
fn joins(objects: &Objects<'_>) -> bool {
    objects.chart == Chart::Agent && objects.case.starts_with("agent that joins")
}

/// The rights of an agent that joins: one Secret on the member, reading nodes, and tokens of the
/// account whose credential it brings.
fn rights_to_join(objects: &Objects<'_>) -> Result<()> {
    let rules = |kind: &'static str| -> Vec<Value> {
        objects.of(kind).flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let secret = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs});
    let mut own = secret(&["get", "update"]);
    own["resourceNames"] = json!(["hub-kubeconfig-secret"]);
    let of = |resource: &str, name: &str, verb: &str| {
        let (resources, names, verbs) = ([resource], [name], [verb]);
        json!({"apiGroups": [""], "resources": resources, "resourceNames": names, "verbs": verbs})
    };
    let mut expected = vec![own, secret(&["create"])];
    if objects.case == BRINGS {
        expected.push(of("serviceaccounts", "cluster-gateway", "get"));
        expected.push(of("serviceaccounts/token", "cluster-gateway", "create"));
        expected.push(of("configmaps", "kube-root-ca.crt", "get"));
        let views = |binding: &Value| {
            binding["roleRef"]["name"] == "view" && binding["subjects"][0]["name"] == "cluster-gateway"
        };
        ensure!(objects.of("ClusterRoleBinding").filter(|binding| views(binding)).count() == 1, "its own rights");
    }
    ensure!(rules("Role") == expected, "{:?}", rules("Role"));
    let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]});
    ensure!(rules("ClusterRole") == [nodes]);
    let workload = &objects.workloads()?[0]["spec"];
    ensure!(workload["replicas"] == 1 && workload["strategy"]["type"] == "Recreate", "two would write one Secret");
    Ok(())
}

/// With the tunnel on, the Secrets that the gateway reads are in a namespace of their own, which
/// outlives the release.
fn apart(objects: &Objects<'_>, read: &Value) -> Result<()> {
    let tunnel = objects.of("Service").any(|service| service["spec"]["ports"][0]["name"] == "agents");
    let expected =
        if tunnel && objects.case != "kubevela with the tunnel" { "vela-system-clusters" } else { "vela-system" };
    ensure!(read == expected, "the gateway reads the Secrets of {read}");
    let made: Vec<_> = objects.of("Namespace").map(|namespace| &namespace["metadata"]).collect();
    ensure!(made.iter().all(|made| made["name"] == expected && expected != "vela-system"), "{made:?}");
    ensure!(made.iter().all(|made| made["annotations"]["helm.sh/resource-policy"] == "keep"), "{made:?}");
    ensure!(made.len() == usize::from(expected != "vela-system"), "{read} is not there");
    Ok(())
}

fn container(objects: &Objects<'_>) -> Result<()> {
    objects.workloads()?.into_iter().try_for_each(|deployment| {
        let pod = &deployment["spec"]["template"]["spec"];
        // If each pod uses a port of its node, there may be no node with room for one more.
        let (surge, unavailable) = if pod["hostNetwork"] == true { (0, 1) } else { (1, 0) };
        // An agent that joins writes a Secret, so there must never be two.
        let joins = joins(objects);
        let rolling = json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let strategy = &deployment["spec"]["strategy"];
        ensure!(*strategy == if joins { json!({"type": "Recreate"}) } else { rolling }, "{strategy}");
        spread(pod)?;
        locked_down(pod)
    })
}

/// Pods of one `ReplicaSet` are spread. If the pods of the previous one, which are about to go,
/// were counted too, the new ones would all consider the same node the emptiest after a drain.
fn spread(pod: &Value) -> Result<()> {
    let Some(constraints) = pod["topologySpreadConstraints"].as_array() else {
        // The agent's values may place its pods instead of the chart.
        let told = pod["containers"][0]["name"] == "tunnel-agent" && pod["affinity"].is_object();
        return told.then_some(()).context("pods may all stand on one node");
    };
    let by_node = constraints.iter().find(|constraint| constraint["topologyKey"] == "kubernetes.io/hostname");
    let by_node = by_node.context("pods may all stand on one node")?;
    ensure!(by_node["matchLabelKeys"] == json!(["pod-template-hash"]), "{by_node}");
    Ok(())
}

fn locked_down(pod: &Value) -> Result<()> {
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    ensure!(context["allowPrivilegeEscalation"] == false && context["readOnlyRootFilesystem"] == true, "{context}");
    ensure!(context["capabilities"] == json!({"drop": ["ALL"]}), "{context}");
    let context = &pod["securityContext"];
    ensure!(context["runAsNonRoot"] == true && context["seccompProfile"]["type"] == "RuntimeDefault", "{context}");
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let expected = match container["name"].as_str() {
            Some(GATEWAY) => json!({"path": path, "port": "https", "scheme": "HTTPS"}),
            _ => json!({"path": path, "port": "admin"}),
        };
        ensure!(container[probe]["httpGet"] == expected, "{probe}: {}", container[probe]);
    }
    if container["name"] == CONTROLLERS {
        return Ok(());
    }
    let seconds = |flag: &str| -> Result<u64> {
        let value = flags(container).find_map(|arg| arg.strip_prefix(flag)).with_context(|| format!("no {flag}"))?;
        Ok(value.trim_end_matches('s').parse()?)
    };
    let before = if container["name"] == "tunnel-agent" { 0 } else { seconds("--shutdown-delay-duration=")? };
    let needed = before + seconds("--drain-timeout=")?;
    let grace = pod["terminationGracePeriodSeconds"].as_u64().context("no grace period")?;
    ensure!(grace > needed, "{grace} s of grace for {needed} s");
    let stuck = &container["livenessProbe"]["terminationGracePeriodSeconds"];
    ensure!(stuck.as_u64().is_some_and(|stuck| stuck < grace), "{stuck} s for one that hangs");
    ensure!(container["resources"]["requests"]["memory"].is_string(), "no memory is requested");
    Ok(())
}

fn references(objects: &Objects<'_>) -> Result<()> {
    let workloads = objects.workloads()?;
    for deployment in &workloads {
        let pod = &deployment["spec"]["template"]["spec"];
        let own = &deployment["spec"]["selector"]["matchLabels"];
        ensure!(selected(&workloads, own)? == *deployment, "{own} selects another one's pods");
        filled(objects, pod)?;
        let account = pod["serviceAccountName"].as_str().context("no ServiceAccount")?;
        ensure!(
            objects.has("ServiceAccount", account) || objects.case.starts_with("kubevela"),
            "no ServiceAccount {account}"
        );
    }
    for service in objects.of("Service") {
        let deployment = selected(&workloads, &service["spec"]["selector"])?;
        let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().context("no ports")?;
        for target in service["spec"]["ports"].as_array().into_iter().flatten().map(|port| &port["targetPort"]) {
            ensure!(ports.iter().any(|port| port["name"] == *target), "the Service leads nowhere: {service}");
        }
    }
    for budget in objects.of("PodDisruptionBudget") {
        selected(&workloads, &budget["spec"]["selector"]["matchLabels"])?;
    }
    // Off by default.
    ensure!(objects.of("NetworkPolicy").next().is_some() == objects.case.contains("polic"), "policies");
    ensure!(objects.of("HorizontalPodAutoscaler").next().is_some() == (objects.case == "autoscaled"), "autoscalers");
    for policy in objects.of("NetworkPolicy") {
        let pod = &selected(&workloads, &policy["spec"]["podSelector"]["matchLabels"])?["spec"]["template"]["spec"];
        served(&pod["containers"][0], policy)?;
    }
    for scaler in objects.of("HorizontalPodAutoscaler") {
        let target = &scaler["spec"]["scaleTargetRef"]["name"];
        let deployment = workloads.iter().find(|deployment| deployment["metadata"]["name"] == *target);
        // An upgrade would undo the autoscaler's changes.
        ensure!(deployment.context("it scales nothing")?["spec"]["replicas"].is_null(), "two say how many");
        scaled(&scaler["spec"])?;
    }
    for api_service in objects.of("APIService") {
        let spec = &api_service["spec"]["service"];
        let service = objects.of("Service").find(|service| service["metadata"]["name"] == spec["name"]);
        let service = service.context("the APIService's Service is not there")?;
        ensure!(spec["port"] == service["spec"]["ports"][0]["port"], "{spec}");
        ensure!(program(selected(&workloads, &service["spec"]["selector"])?) == GATEWAY, "{spec}");
    }
    Ok(())
}

/// Checks the values of `autoscaled`.
fn scaled(spec: &Value) -> Result<()> {
    ensure!(spec["minReplicas"] == 3 && spec["maxReplicas"] == 5, "{spec}");
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}});
    ensure!(spec["metrics"] == json!([{"type": "Resource", "resource": cpu}]), "{spec}");
    Ok(())
}

/// A policy admits connections to each port of its pods, only from peers that the values or the
/// chart name.
fn served(container: &Value, policy: &Value) -> Result<()> {
    let rules = policy["spec"]["ingress"].as_array().context("nobody may connect")?;
    let ports = container["ports"].as_array().context("no ports")?;
    for port in ports {
        let rule = rules.iter().find(|rule| rule["ports"][0]["port"] == port["name"]);
        let rule = rule.with_context(|| format!("nobody may connect to {port}"))?;
        let peers = rule["from"].as_array();
        ensure!(peers.is_none_or(|peers| !peers.is_empty()), "{rule}");
        // The chart knows its gateways without values.
        ensure!(port["name"] != "frontends" || peers.is_some(), "everybody may connect to {port}");
    }
    ensure!(rules.len() == ports.len(), "{rules:?}");
    Ok(())
}

/// The only Deployment whose pods `selector` selects.
fn selected<'a>(workloads: &[&'a Value], selector: &Value) -> Result<&'a Value> {
    let selector = selector.as_object().filter(|selector| !selector.is_empty()).context("no selector")?;
    let mut selected = workloads.iter().filter(|deployment| {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        selector.iter().all(|(key, value)| labels[key] == *value)
    });
    let first = selected.next().with_context(|| format!("{selector:?} selects nothing"))?;
    ensure!(selected.next().is_none(), "{selector:?} selects pods of several Deployments");
    Ok(first)
}

/// Checks that everything that `pod` mounts exists.
fn filled(objects: &Objects<'_>, pod: &Value) -> Result<()> {
    ensure!(pod["volumes"].is_array() || pod["containers"][0]["name"] == CONTROLLERS, "no volumes");
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        if let Some(name) = volume["secret"]["secretName"].as_str() {
            let filled = objects.of("Certificate").any(|certificate| certificate["spec"]["secretName"] == name);
            ensure!(filled || name.starts_with("mine") || objects.has("Secret", name), "Secret {name} is not there");
        }
        if let Some(name) = volume["configMap"]["name"].as_str() {
            let there = objects.has("ConfigMap", name) || volume["configMap"]["optional"] == true;
            ensure!(there, "ConfigMap {name} is not there");
        }
    }
    Ok(())
}

/// Parses the containers' arguments. The volumes' files do not exist here; another test checks that
/// they can be used. `told` gets the programs that have `extraArgs` after the chart's own flags.
fn arguments(objects: &Objects<'_>, told: &mut BTreeSet<String>) -> Result<()> {
    for deployment in objects.workloads()? {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let port = |name: &str| -> Option<u16> {
            let port = container["ports"].as_array()?.iter().find(|port| port["name"] == name)?;
            u16::try_from(port["containerPort"].as_u64()?).ok()
        };
        // The kubelet connects from outside the pod.
        let is_probed = |listen: SocketAddr| port("admin") == Some(listen.port()) && listen.ip().is_unspecified();
        let words = [program(deployment)].into_iter().chain(flags(container));
        if flags(container).any(|flag| flag == EXTRA) {
            ensure!(flags(container).last() == Some(EXTRA), "the chart's flags win over extraArgs");
            told.insert(program(deployment).to_owned());
        }
        match program(deployment) {
            GATEWAY => {
                let config = Config::try_from(args::parse_from(words)?)?;
                ensure!(port("https") == Some(config.listen.port()), "listens on {}", config.listen);
                let user_server = config.user_server;
                ensure!(port("user-server") == user_server.map(|listen| listen.port()), "and on {user_server:?}");
                ensure!(user_server.is_none_or(|listen| listen.ip().is_unspecified()), "{user_server:?}");
                ensure!(user_server.is_some() == objects.case.contains("user server"), "{user_server:?}");
            }
            "tunnel-server" => {
                let config = tunnel_server::args::Config::new(tunnel_server::args::parse_from(words)?, true)?;
                ensure!(is_probed(config.admin_listen), "admin on {}", config.admin_listen);
            }
            "tunnel-agent" => {
                let config = tunnel_agent::args::Config::new(&tunnel_agent::args::parse_from(words)?, in_pod)?;
                ensure!(is_probed(config.admin_listen), "admin on {}", config.admin_listen);
            }
            CONTROLLERS => {
                let listen = flags(container).find_map(|arg| arg.strip_prefix("--admin-listen="));
                ensure!(is_probed(listen.context("no admin listener")?.parse()?), "admin on {listen:?}");
            }
            other => bail!("what is {other}?"),
        }
    }
    Ok(())
}

/// The variables that the kubelet sets in a pod for its cluster.
fn in_pod(variable: &str) -> Option<String> {
    let value = match variable {
        "KUBERNETES_SERVICE_HOST" => "10.96.0.1",
        "KUBERNETES_SERVICE_PORT" => "443",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The name of the container, which is that of its program.
fn program(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["name"].as_str().unwrap_or_default()
}

fn flags(container: &Value) -> impl Iterator<Item = &str> {
    container["args"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn has_value(data: &Value, value: &str) -> bool {
    data.as_object().is_some_and(|data| data.values().any(|other| other == value))
}

// === impl Objects ===

impl<'a> Objects<'a> {
    fn of(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.all.iter().filter(move |object| object["kind"] == kind)
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        self.of(kind).any(|object| object["metadata"]["name"] == name)
    }

    /// The Deployments, at least one.
    fn workloads(&self) -> Result<Vec<&'a Value>> {
        let workloads: Vec<_> = self.of("Deployment").collect();
        ensure!(!workloads.is_empty(), "no Deployment");
        Ok(workloads)
    }

    /// The Deployment of `name`, a program.
    fn workload(&self, name: &str) -> Option<&'a Value> {
        self.of("Deployment").find(|deployment| program(deployment) == name)
    }
}
