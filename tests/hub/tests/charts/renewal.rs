//! Renewal of certificates that helm generated, and of agents' tokens, as the documentation says.

use hub_tests::prelude::*;
use libtest_mimic::Trial;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use crate::fixture::{Fixture, Planes, TUNNELLED, on_hub};
use crate::installed::{Installed, RELEASE, shell};

/// Time for the hub to fill a token's Secret, and to notice that one was deleted.
const TOKENS: Duration = Duration::from_secs(30);
const LEAVES: [(&str, &str); 3] = [
    ("cluster-gateway-tls", "cluster-gateway.renewed.svc"),
    ("cluster-gateway-tunnel-agents-tls", "cluster-gateway-tunnel-agents.renewed.svc"),
    ("cluster-gateway-tunnel-frontends-tls", "cluster-gateway-tunnel.renewed.svc"),
];
const CLIENT: &str = "cluster-gateway-tunnel-gateway-tls";

/// The Secret of a certificate, in PEM.
#[derive(PartialEq)]
struct Pair {
    certificate: String,
    bundle: String,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        on_hub(fixture, "renewal::certificates and CAs are renewed, and the old ones are good meanwhile", certificates),
        on_hub(fixture, "renewal::an agent's token that was revoked does not come back", tokens),
    ]
}

fn certificates(planes: &Planes) -> Result<()> {
    let release = Installed { planes, namespace: "renewed" };
    release.helm("install", &["--set=tunnel.server.enabled=true".into()])?;
    let installed = release.pairs()?;
    release.upgrade()?;
    ensure!(release.pairs()? == installed, "an upgrade made others for nothing");

    release.delete(&LEAVES.map(|(name, _)| name.to_owned()))?;
    release.upgrade()?;
    let renewed = release.pairs()?;
    for ((before, now), (name, host)) in installed.iter().zip(&renewed).zip(LEAVES) {
        ensure!(now.certificate != before.certificate, "{name} is not renewed");
        ensure!(now.bundle == before.bundle, "{name} is of another CA");
        verify(&now.bundle, &now.certificate, host)?;
    }
    let client = release.pair(CLIENT)?;
    ensure!(client.bundle == renewed[2].bundle, "gateways and tunnel-servers do not believe each other");

    release.delete(&LEAVES.map(|(name, _)| format!("{name}-ca")))?;
    release.upgrade()?;
    let between = release.pairs()?;
    release.delete(&LEAVES.map(|(name, _)| name.to_owned()))?;
    release.upgrade()?;
    let replaced = release.pairs()?;
    for (((before, between), now), (name, host)) in renewed.iter().zip(&between).zip(&replaced).zip(LEAVES) {
        ensure!(between.certificate == before.certificate, "{name}: before everybody believes its CA");
        ensure!(between.bundle != before.bundle && between.bundle == now.bundle, "{name}: no other CA");
        ensure!(verify(&before.bundle, &now.certificate, host).is_err(), "{name} is of the old CA");
        for certificate in [&before.certificate, &now.certificate] {
            verify(&now.bundle, certificate, host)?;
        }
        ensure!(now.bundle.matches("BEGIN CERTIFICATE").count() == 2, "{name}: {}", now.bundle);
    }
    ensure!(release.pair(CLIENT)?.bundle == replaced[2].bundle, "the client's end believes others");
    release.uninstall()
}

/// Verifies as clients do, ours and the hub.
fn verify(bundle: &str, certificate: &str, host: &'static str) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root?)?;
    }
    let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build()?;
    let leaf = CertificateDer::from_pem_slice(certificate.as_bytes())?;
    verifier.verify_server_cert(&leaf, &[], &ServerName::try_from(host)?, &[], UnixTime::now())?;
    Ok(())
}

fn tokens(planes: &Planes) -> Result<()> {
    let release = Installed { planes, namespace: "rotated" };
    let values = ["--set=tunnel.server.enabled=true".to_owned(), format!("--set=tunnel.agents={{{TUNNELLED}}}")];
    let first = release.token(&release.helm("install", &values)?)?;
    ensure!(release.token(&release.upgrade()?)? == first, "an upgrade made another for nothing");
    for _ in 0..2 {
        let token = release.token(&release.upgrade()?)?;
        release.delete(&[release.token_secret()?])?;
        wait::until_true("the token to be revoked", TOKENS, || Ok(!release.is_valid(&token)?))?;
        let next = release.token(&release.upgrade()?)?;
        ensure!(next != token && next != first && release.is_valid(&next)?, "no other token");
        ensure!(!release.is_valid(&token)? && !release.is_valid(&first)?, "what was revoked is back");
        ensure!(release.token(&release.upgrade()?)? == next, "an upgrade made another for nothing");
    }
    // Deletion of the account revokes everything; the next account is another one.
    let account = format!("tunnel-agent-{TUNNELLED}");
    let token = release.token(&release.upgrade()?)?;
    planes.hub.server.delete(&format!("serviceaccount {account} -n {}", release.namespace))?;
    wait::until_true("its Secret to be gone", TOKENS, || Ok(release.token_secrets()?.is_empty()))?;
    let next = release.token(&release.upgrade()?)?;
    ensure!(next != token, "the account's old token is back");
    wait::until_true("the new token to be valid", TOKENS, || release.is_valid(&next))?;
    wait::until_true("the old one to be revoked", TOKENS, || Ok(!release.is_valid(&token)?))?;
    // A rollback restores the name of the first Secret, not the account of its token.
    planes.helm.args(["rollback", RELEASE, "1", "--namespace", release.namespace]).run()?.success()?;
    ensure!(!release.is_valid(&first)? && release.is_valid(&next)?, "what was revoked is back");
    release.uninstall()
}

// === impl Installed ===

impl Installed<'_> {
    fn upgrade(&self) -> Result<String> {
        self.helm("upgrade", &["--reuse-values".to_owned()])
    }

    fn delete(&self, secrets: &[String]) -> Result<()> {
        self.planes.hub.server.delete(&format!("secret -n {} {}", self.namespace, secrets.join(" ")))
    }

    fn pairs(&self) -> Result<Vec<Pair>> {
        LEAVES.iter().map(|(name, _)| self.pair(name)).collect()
    }

    fn pair(&self, name: &str) -> Result<Pair> {
        let text = |key: &str| self.planes.hub.server.secret(&format!("{name} -n {}", self.namespace), key);
        Ok(Pair { certificate: text("tls.crt")?, bundle: text("ca.crt")? })
    }

    /// Name of the Secret with the agent's token.
    fn token_secret(&self) -> Result<String> {
        let mut names = self.token_secrets()?;
        ensure!(names.len() == 1, "{names:?}");
        names.pop().context("there is one")
    }

    /// Names of the Secrets with tokens.
    fn token_secrets(&self) -> Result<Vec<String>> {
        let kind = "type=kubernetes.io/service-account-token";
        self.planes.hub.server.names(&format!("secrets -n {} --field-selector {kind}", self.namespace))
    }

    /// The output of the notes' command, once the hub has created the token.
    fn token(&self, notes: &str) -> Result<String> {
        let command = notes.lines().find(|line| line.ends_with("-o jsonpath='{.data.token}' | base64 -d"));
        let command = command.context("the notes do not say where the token is")?;
        let mut token = String::new();
        wait::until_true("a token", TOKENS, || {
            token = shell(self.planes, command.trim())?;
            Ok(!token.is_empty())
        })?;
        Ok(token)
    }

    /// Whether the hub accepts it as the agent's.
    fn is_valid(&self, token: &str) -> Result<bool> {
        let user = self.planes.hub.server.user_of(token)?;
        let is_agent = |user: &str| user.ends_with(&format!(":tunnel-agent-{TUNNELLED}"));
        ensure!(user.as_deref().is_none_or(is_agent), "{user:?}");
        Ok(user.is_some())
    }
}
