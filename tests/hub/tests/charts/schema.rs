//! Values that would not do what they seem to say are refused before anything is installed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::helm::Helm;
use libtest_mimic::Trial;

use crate::matrix;
use crate::stage::{Stage, rendering};

pub(crate) fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![
        rendering(stage, "schema::helm lint has nothing to say", lint),
        rendering(stage, "schema::wrong values are refused", refusals),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a test")]
fn lint(helm: &Helm, directory: PathBuf) -> Result<()> {
    for case in matrix::cases() {
        // Lint knows no API versions.
        let arguments = case.arguments(&directory)?.into_iter().filter(|word| !word.starts_with("--api-versions"));
        let text = helm.on_chart("lint --strict", "vela-system", &arguments.collect::<Vec<_>>()).context(case.name)?;
        ensure!(!text.contains("[WARNING]") && text.contains("0 chart(s) failed"), "{}: {text}", case.name);
    }
    Ok(())
}

fn refusals(helm: &Helm, _directory: PathBuf) -> Result<()> {
    for (values, told) in [
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
        ("featureGates.HealthinessCheck=yes", "/featureGates/HealthinessCheck"),
        ("access[0].name=a,access[0].subjects[0].kind=User,access[0].subjects[0].name=b,access[0].verbs[0]=*", "verbs"),
        ("service.name=Door", "/service/name"),
        ("tls.existingSecret=mine", "tls.caBundle is required"),
    ] {
        let error = helm.template("door", "vela-system", &[format!("--set={values}")]).err();
        let error = format!("{:#}", error.with_context(|| format!("{values} is accepted"))?);
        ensure!(error.contains(told), "{values}: {told} missing in: {error}");
    }
    Ok(())
}
