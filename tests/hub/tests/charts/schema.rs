//! Values that would not do what they seem to say are refused before anything is installed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::{Chart, Helm};
use libtest_mimic::Trial;

use crate::fixture::{Fixture, rendering};
use crate::matrix;

/// Values of the gateway's chart, and what the error contains.
const WRONG: [(&str, &str); 21] = [
    ("replica=3", "'replica' not allowed"),
    ("tls.certmanager.enabled=true", "'certmanager' not allowed"),
    ("tls.insecureSkipTLSVerify=true", "'insecureSkipTLSVerify' not allowed"),
    ("metrics.serviceMonitor.interval=5s", "'interval' not allowed"),
    ("access[0].name=a,access[0].role=admin", "'role' not allowed"),
    ("tls.certManager.enabled=maybe", "/tls/certManager/enabled"),
    ("tls.caBundle=Cg==", "/tls/caBundle"),
    ("tls.caKey=tls.key", "/tls/caKey"),
    ("replicas=many", "/replicas"),
    ("port=99999", "/port"),
    ("livenessGracePeriodSeconds=0", "/livenessGracePeriodSeconds"),
    ("featureGates.HealthinessCheck=yes", "/featureGates/HealthinessCheck"),
    ("access[0].name=a,access[0].subjects[0].kind=User,access[0].subjects[0].name=b,access[0].verbs[0]=*", "verbs"),
    ("tunnel.server.enabled=true,tunnel.agentTokenGenerations.berlin=0", "agentTokenGenerations"),
    ("service.name=Door", "/service/name"),
    ("secretNamespace=Clusters", "/secretNamespace"),
    ("tls.existingSecret=mine", "tls.caBundle is required"),
    ("networkPolicy.enable=true", "'enable' not allowed"),
    ("autoscaling.enabled=true,autoscaling.minReplicas=11", "greater than autoscaling.maxReplicas"),
    ("autoscaling.enabled=true,resources.requests.cpu=null", "requires resources.requests.cpu"),
    ("autoscaling.enabled=true,tunnel.embedded.enabled=true", "maxReplicas greater than two"),
];

/// Values of the gateway's chart that contradict each other.
const CONTRADICTIONS: [(&str, &str); 13] = [
    ("tunnel.server.enabled=true,tunnel.embedded.enabled=true", "are both true"),
    ("tunnel.embedded.enabled=true,replicas=3", "more than two replicas"),
    ("tunnel.agents[0]=berlin", "nothing accepts their agents"),
    ("tunnel.server.enabled=true,tunnel.agents[0]=Berlin", "/tunnel/agents/0"),
    (
        "tunnel.server.enabled=true,tunnel.listen.existingSecret=a,tunnel.listen.issuerRef.name=b",
        "are both given: remove one",
    ),
    ("tunnel.server.enabled=true,tunnel.listen.issuerRef.name=b", "tunnel.listen.hosts is required"),
    (
        "tunnel.server.enabled=true,tunnel.listen.service.nodePort=30000,tunnel.listen.service.type=ClusterIP",
        "is ClusterIP",
    ),
    (
        "tunnel.server.enabled=true,tunnel.listen.service.type=NodePort,tunnel.listen.service.loadBalancerClass=a",
        "with type LoadBalancer only",
    ),
    ("tunnel.server.enabled=true,tunnel.frontends.existingSecret=a", "belong together"),
    (
        "tunnel.embedded.enabled=true,tunnel.frontends.existingSecret=a,tunnel.frontends.existingClientSecret=b",
        "with tunnel.server.enabled only",
    ),
    (
        "tunnel.server.enabled=true,tunnel.frontends.existingSecret=a,tunnel.frontends.existingClientSecret=b,tunnel.listen.clientCASecret=a",
        "every agent could pose as a gateway",
    ),
    ("tunnel.server.enabled=true,tunnel.server.adminPort=8090", "must differ"),
    ("tunnel.embedded.enabled=true,tunnel.listen.port=9443", "must differ"),
];

/// Incomplete values of the agent's chart, and what the error contains.
const AGENT_LACKS: [(&str, &str); 6] = [
    ("servers[0]=hub.example.test:8091", "cluster is required"),
    ("cluster=berlin", "servers is required"),
    ("cluster=berlin,servers[0]=hub.example.test:8091", "credential.existingSecret or credential.token is required"),
    (
        "cluster=berlin,servers[0]=hub.example.test:8091,credential.type=certificate",
        "credential.certificate and credential.key",
    ),
    (
        "cluster=berlin,servers[0]=hub.example.test:8091,credential.token=a,serverCA.secretKey=ca.crt",
        "which is not given",
    ),
    (
        "cluster=berlin,servers[0]=hub.example.test:8091,credential.type=certificate,credential.token=a",
        "set it to token",
    ),
];

/// Wrong values on top of the agent's required ones, and what the error contains.
const AGENT: [(&str, &str); 9] = [
    ("credential.token=a", "are both given: remove one"),
    ("cluster=Berlin", "/cluster"),
    ("servers[0]=hub.example.test", "/servers/0"),
    ("server=hub.example.test:8091", "'server' not allowed"),
    ("links=0", "/links"),
    ("proxy.url=http://user:password@proxy:3128", "/proxy/url"),
    ("proxy.url=http://proxy:3128,proxy.secretKey=a", "are both given: remove one"),
    ("serverCA.secretKey=a,serverCA.pem=Cg", "/serverCA/pem"),
    ("apiServer=https://10.0.0.1:6443", "/apiServer"),
];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        rendering(fixture, "schema::helm lint has nothing to say", lint),
        rendering(fixture, "schema::wrong values are refused", |helm, _| refused(helm, "", &WRONG)),
        rendering(fixture, "schema::an empty list of clusters does not grant all of them", empty_access),
        rendering(fixture, "schema::an agent's token is another by the values alone", generations),
        rendering(fixture, "schema::a hub that is too old for a part is refused", |helm, _| old(helm)),
        rendering(fixture, "schema::contradictions about the tunnel are refused", |helm, _| {
            refused(helm, "", &CONTRADICTIONS)
        }),
        rendering(fixture, "schema::an agent that could not work is refused", |helm, _| {
            refused(&helm.with(Chart::Agent), "", &AGENT_LACKS)?;
            refused(
                &helm.with(Chart::Agent),
                "cluster=berlin,servers[0]=hub.example.test:8091,credential.existingSecret=mine,",
                &AGENT,
            )
        }),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a test")]
fn lint(helm: &Helm, directory: PathBuf) -> Result<()> {
    for case in matrix::cases() {
        // helm's lint knows no `--api-versions`.
        let arguments = case.arguments(&directory)?.into_iter().filter(|word| !word.starts_with("--api-versions"));
        let text = helm
            .with(case.chart)
            .on_chart("lint --strict", "vela-system", &arguments.collect::<Vec<_>>())
            .context(case.name)?;
        ensure!(!text.contains("[WARNING]") && text.contains("0 chart(s) failed"), "{}: {text}", case.name);
    }
    Ok(())
}

/// A rendering without the hub does not see that a Secret was deleted: a Secret of the same name
/// has the same token again.
fn generations(helm: &Helm, _: PathBuf) -> Result<()> {
    let secret = |values: &str| -> Result<String> {
        let set = "--set=image.repository=x,tunnel.server.enabled=true,tunnel.server.image.repository=y,tunnel.agents={berlin}";
        let documents = helm.template("door", "vela-system", &[format!("{set}{values}")])?;
        let token = documents.iter().find(|document| document["type"] == "kubernetes.io/service-account-token");
        Ok(token.context("no token")?["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    };
    let names = [secret("")?, secret(",tunnel.agentTokenGenerations.berlin=2")?];
    ensure!(names == ["tunnel-agent-berlin", "tunnel-token-2-berlin"], "{names:?}");
    ensure!(secret(",tunnel.agentTokenGenerations.oslo=2")? == names[0], "another cluster's");
    Ok(())
}

/// The last `--kube-version` counts.
fn old(helm: &Helm) -> Result<()> {
    for value in ["ocmRegistration.enabled=true", "parts.placement=true,controllers.workAdmission=true"] {
        let on = |version: &str| {
            let set = format!("--set=image.repository=x,controllers.enabled=true,controllers.{value}");
            helm.template("door", "vela-system", &[set, format!("--kube-version={version}")])
        };
        on("1.30.0")?;
        on("1.30.2-eks-1234")?;
        let error = format!("{:#}", on("1.29.7").err().context("a hub without admission policies is accepted")?);
        ensure!(error.contains("Kubernetes v1.29.7") && error.contains("need 1.30"), "{error}");
    }
    Ok(())
}

fn empty_access(helm: &Helm, _: PathBuf) -> Result<()> {
    let access = |clusters: &str| {
        let subjects = r#""subjects":[{"kind":"User","name":"b"}]"#;
        let words = [format!(r#"--set-json=access=[{{"name":"a",{clusters}{subjects}}}]"#)];
        helm.template("door", "vela-system", &[words, ["--set=image.repository=x".to_owned()]].concat())
    };
    access("")?;
    let error = format!("{:#}", access(r#""clusters":[],"#).err().context("an empty list is accepted")?);
    ensure!(error.contains("/access/0/clusters") && error.contains("minItems"), "{error}");
    Ok(())
}

fn refused(helm: &Helm, before: &str, rows: &[(&str, &str)]) -> Result<()> {
    for (values, told) in rows {
        let error = helm.template("door", "vela-system", &[format!("--set={before}{values}")]).err();
        let error = format!("{:#}", error.with_context(|| format!("{values} is accepted"))?);
        ensure!(error.contains(told), "{values}: {told} missing in: {error}");
    }
    Ok(())
}
