//! What must hold of everything the chart renders to, whatever the values.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gateway::args::{self, Config};
use hub_tests::helm::Helm;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::matrix;
use crate::stage::{Stage, rendering};

type Check = fn(&Objects<'_>) -> Result<()>;

/// The objects of one rendering.
struct Objects<'a> {
    all: &'a [Value],
    case: &'a str,
}

pub(crate) fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![
        rendering(stage, "invariants::the hub always verifies the gateway", |helm, path| each(helm, path, verified)),
        rendering(stage, "invariants::the gateway may do what it needs and no more", |helm, path| {
            each(helm, path, least_rights)
        }),
        rendering(stage, "invariants::the container is locked down, probed, and has time to drain", |helm, path| {
            each(helm, path, container)
        }),
        rendering(stage, "invariants::names, ports and labels refer to what is there", |helm, path| {
            each(helm, path, references)
        }),
        rendering(stage, "invariants::the gateway takes its arguments", |helm, path| each(helm, path, arguments)),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a test")]
fn each(helm: &Helm, directory: PathBuf, check: Check) -> Result<()> {
    for case in matrix::cases() {
        let all = case.objects(helm, &directory, "vela-system")?;
        check(&Objects { all: &all, case: case.name }).with_context(|| format!("values: {}", case.name))?;
    }
    Ok(())
}

fn verified(objects: &Objects<'_>) -> Result<()> {
    let text = json!(objects.all).to_string();
    ensure!(!text.contains("insecureSkipTLSVerify"), "verification can be skipped");
    let Some(service) = objects.of("APIService").next() else {
        ensure!(objects.case.contains("somebody else's"), "no APIService");
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
    let generated = objects.of("Secret").next();
    ensure!(generated.is_none_or(|secret| has_value(&secret["data"], bundle)), "another CA than the generated one");
    Ok(())
}

fn least_rights(objects: &Objects<'_>) -> Result<()> {
    for role in objects.of("ClusterRole").chain(objects.of("Role")) {
        for rule in role["rules"].as_array().context("no rules")? {
            ensure!(!rule.to_string().contains('*'), "a wildcard: {rule}");
            let expected = match (role["kind"].as_str(), rule["resources"][0].as_str()) {
                (Some("Role"), Some("secrets")) if objects.case == "health" => {
                    ensure!(role["metadata"]["namespace"] == "clusters");
                    json!(["get", "list", "watch", "update"])
                }
                (Some("Role"), Some("secrets")) => json!(["get", "list", "watch"]),
                (Some("ClusterRole"), Some("managedclusters")) if objects.case == "ocm" => {
                    json!(["get", "list", "watch"])
                }
                // For users, as the values say.
                (Some("ClusterRole"), Some("clustergateways/proxy")) => continue,
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

fn container(objects: &Objects<'_>) -> Result<()> {
    let pod = objects.pod()?;
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    ensure!(context["allowPrivilegeEscalation"] == false && context["readOnlyRootFilesystem"] == true, "{context}");
    ensure!(context["capabilities"] == json!({"drop": ["ALL"]}), "{context}");
    let context = &pod["securityContext"];
    ensure!(context["runAsNonRoot"] == true && context["seccompProfile"]["type"] == "RuntimeDefault", "{context}");
    for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let expected = json!({"path": path, "port": "https", "scheme": "HTTPS"});
        ensure!(container[probe]["httpGet"] == expected, "{probe}: {}", container[probe]);
    }
    let seconds = |flag: &str| -> Result<u64> {
        let value = flags(container).find_map(|arg| arg.strip_prefix(flag)).with_context(|| format!("no {flag}"))?;
        Ok(value.trim_end_matches('s').parse()?)
    };
    let needed = seconds("--shutdown-delay-duration=")? + seconds("--drain-timeout=")?;
    let grace = pod["terminationGracePeriodSeconds"].as_u64().context("no grace period")?;
    ensure!(grace > needed, "{grace} s of grace for {needed} s");
    ensure!(container["resources"]["requests"]["memory"].is_string(), "no memory is requested");
    Ok(())
}

fn references(objects: &Objects<'_>) -> Result<()> {
    let pod = objects.pod()?;
    let container = &pod["containers"][0];
    let port = &container["ports"][0];
    ensure!(flags(container).any(|arg| arg == format!("--secure-port={}", port["containerPort"])), "another port");
    let deployment = objects.of("Deployment").next().context("no Deployment")?;
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let service = objects.of("Service").next().context("no Service")?;
    ensure!(service["spec"]["ports"][0]["targetPort"] == port["name"], "the Service leads nowhere");
    let budgets = objects.of("PodDisruptionBudget").map(|budget| &budget["spec"]["selector"]["matchLabels"]);
    for selector in
        [&deployment["spec"]["selector"]["matchLabels"], &service["spec"]["selector"]].into_iter().chain(budgets)
    {
        let selector = selector.as_object().context("no selector")?;
        ensure!(!selector.is_empty() && selector.iter().all(|(key, value)| labels[key] == *value), "{selector:?}");
    }
    for api_service in objects.of("APIService") {
        ensure!(api_service["spec"]["service"]["name"] == service["metadata"]["name"]);
        ensure!(api_service["spec"]["service"]["port"] == service["spec"]["ports"][0]["port"]);
    }
    for volume in pod["volumes"].as_array().context("no volumes")? {
        if let Some(name) = volume["secret"]["secretName"].as_str() {
            let filled = objects.of("Certificate").any(|certificate| certificate["spec"]["secretName"] == name);
            ensure!(filled || name == "mine" || objects.has("Secret", name), "Secret {name} is not there");
        }
        if let Some(name) = volume["configMap"]["name"].as_str() {
            ensure!(objects.has("ConfigMap", name), "ConfigMap {name} is not there");
        }
    }
    Ok(())
}

fn arguments(objects: &Objects<'_>) -> Result<()> {
    let container = &objects.pod()?["containers"][0];
    let parsed = args::parse_from(["cluster-gateway"].into_iter().chain(flags(container)))?;
    // The files of the volumes are not here: whether they can be used is another test's question.
    let config = Config::try_from(parsed)?;
    let port = container["ports"][0]["containerPort"].as_u64();
    ensure!(port == Some(u64::from(config.listen.port())), "listens on {}", config.listen);
    Ok(())
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

    fn pod(&self) -> Result<&'a Value> {
        let deployment = self.of("Deployment").next().context("no Deployment")?;
        Ok(&deployment["spec"]["template"]["spec"])
    }
}
