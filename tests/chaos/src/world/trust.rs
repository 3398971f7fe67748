//! Authorities and certificates of the product's programs, and their renewal while they run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::control_plane::{ApiServer, Launcher};
use hub_tests::hub::GATEWAY_HOST;
use hub_tests::tunnel::Tunnel;
use kit::pki::{Authority, Issued, Leaf, PemFiles};
use serde_json::json;
use time::Duration;

/// User of the agent that has a certificate.
pub(super) const AGENT: &str = "agent-certified";

/// Validity of issued certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    Long,
    Seconds(i64),
}

pub(super) struct Trust {
    /// Signs the gateways' serving certificates.
    pub(super) gateways: Authority,
    /// The tunnel's authorities and files.
    pub(super) tunnel: Tunnel,
    directory: PathBuf,
}

// === impl Trust ===

impl Trust {
    pub(super) fn prepare(launcher: &Launcher) -> Result<Self> {
        let (gateways, tunnel) = (Authority::new("gateways-ca"), Tunnel::prepare(launcher)?);
        Ok(Self { gateways, tunnel, directory: launcher.directory.clone() })
    }

    /// Issues the gateways', the tunnel-servers', the frontends' and the agent's certificates, and
    /// writes them where their programs read them.
    pub(super) fn issue(&self, validity: Validity) -> Result<()> {
        for number in 0..2 {
            let leaf = Leaf::server(format!("gateway-{number}")).san(GATEWAY_HOST);
            put(&self.gateways.issue(&validity.of(leaf)), &self.gateway_files(number))?;
        }
        let Tunnel { serving, agents, frontends, .. } = &self.tunnel;
        let serving = serving.issue(&validity.of(Leaf::server("tunnel-server")));
        put(&serving, self.tunnel.serving_files())?;
        put(&frontends.issue(&validity.of(Leaf::client("frontend"))), self.tunnel.frontend())?;
        put(&agents.issue(&validity.of(Leaf::client(AGENT))), &self.agent_files())
    }

    /// Makes new authorities, and makes every program trust them beside the old ones. Returns the
    /// old ones.
    pub(super) fn add_authorities(&mut self, hub: &ApiServer) -> Result<[String; 4]> {
        let old = self.roots();
        self.gateways = Authority::new("gateways-ca");
        self.tunnel.serving = Authority::new("tunnel-server-ca");
        self.tunnel.agents = Authority::new("tunnel-agents-ca");
        self.tunnel.frontends = Authority::new("tunnel-frontends-ca");
        let both: Vec<String> = old.iter().zip(self.roots()).map(|(old, new)| format!("{old}{new}")).collect();
        self.publish(hub, &both)?;
        Ok(old)
    }

    /// Makes every program trust the present authorities alone.
    pub(super) fn drop_old_authorities(&self, hub: &ApiServer) -> Result<()> {
        self.publish(hub, &self.roots())
    }

    pub(super) fn gateway_files(&self, number: usize) -> PemFiles {
        self.files(&format!("gateway-{number}"))
    }

    pub(super) fn agent_files(&self) -> PemFiles {
        self.files(AGENT)
    }

    fn files(&self, stem: &str) -> PemFiles {
        let file = |extension| self.directory.join(format!("{stem}.{extension}"));
        PemFiles { certificate: file("crt"), key: file("key") }
    }

    fn roots(&self) -> [String; 4] {
        let Tunnel { serving, agents, frontends, .. } = &self.tunnel;
        [&self.gateways, serving, agents, frontends].map(Authority::root_pem)
    }

    fn publish(&self, hub: &ApiServer, bundles: &[String]) -> Result<()> {
        let patch = json!({"spec": {"caBundle": BASE64.encode(&bundles[0])}}).to_string();
        let words = ["patch", "apiservice", "v1alpha1.cluster.core.oam.dev", "--type=merge", "-p", &patch];
        hub.kubectl().args(words).run()?.success()?;
        let files = [
            self.tunnel.serving_authority_file(),
            self.tunnel.agents_authority_file(),
            self.tunnel.frontends_authority_file(),
        ];
        files.into_iter().zip(&bundles[1..]).try_for_each(|(path, bundle)| replace(path, bundle))
    }
}

// === impl Validity ===

impl Validity {
    fn of(self, leaf: Leaf) -> Leaf {
        match self {
            Self::Long => leaf,
            Self::Seconds(seconds) => leaf.valid(Duration::hours(-1), Duration::seconds(seconds)),
        }
    }
}

fn put(issued: &Issued, files: &PemFiles) -> Result<()> {
    replace(&files.certificate, &issued.chain_pem)?;
    replace(&files.key, &issued.key_pem)
}

/// Replaces a file at once, as updates of mounted Secrets do.
fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)?;
    Ok(std::fs::rename(&new, path)?)
}
