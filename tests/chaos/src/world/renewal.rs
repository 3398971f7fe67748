//! Certificates and authorities that change while everything runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::wait;

use super::World;
use super::product::Program;
use super::trust::Validity;

/// Limit for files to be in use: programs look four times a second.
const LIMIT: Duration = Duration::from_mins(1);

/// The files that are replaced at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Certificates,
    Authorities,
}

impl World {
    /// Replaces all certificates by ones of the same authorities, and waits until they are in use.
    pub fn renew(&self, validity: Validity) -> Result<()> {
        self.change(Files::Certificates, || self.trust.issue(validity))
    }

    /// Replaces all certificates and the authorities above them, in the order in which an operator
    /// has to do it: trust both, use the new, forget the old.
    pub fn renew_authorities(&mut self) -> Result<()> {
        let (before, connections) = (self.uses(Files::Authorities)?, self.service.gate().accepted());
        self.trust.add_authorities(&self.hub.server)?;
        self.wait_used(Files::Authorities, &before)?;
        // The hub says of its own trust only that it connects again.
        wait::until_true("the hub to connect again", LIMIT, || Ok(self.service.gate().accepted() > connections))?;
        self.renew(Validity::Long)?;
        self.change(Files::Authorities, || self.trust.drop_old_authorities(&self.hub.server))
    }

    fn change(&self, files: Files, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.uses(files)?;
        change()?;
        self.wait_used(files, &before)
    }

    fn wait_used(&self, files: Files, before: &[usize]) -> Result<()> {
        wait::until("new files to be in use", LIMIT, || {
            for ((before, now), (_, file)) in before.iter().zip(self.uses(files)?).zip(self.users(files)) {
                ensure!(now > *before, "{} is not in use", file.display());
            }
            Ok(())
        })
    }

    fn uses(&self, files: Files) -> Result<Vec<usize>> {
        self.users(files).into_iter().map(|(program, file)| program.uses(&file)).collect()
    }

    /// The programs that read these files, each with the file's path.
    fn users(&self, files: Files) -> Vec<(&Program, PathBuf)> {
        let (tunnel, product) = (&self.trust.tunnel, &self.product);
        let mut users = Vec::new();
        match files {
            Files::Certificates => {
                for (number, gateway) in product.gateways.iter().enumerate() {
                    users.push((gateway, self.trust.gateway_files(number).certificate));
                    users.push((gateway, tunnel.frontend().certificate.clone()));
                }
                users.extend(product.servers.iter().map(|server| (server, tunnel.serving_files().certificate.clone())));
                users.push((&product.agents[1], self.trust.agent_files().certificate));
            }
            Files::Authorities => {
                let serving = tunnel.serving_authority_file();
                users.extend(product.gateways.iter().chain(&product.agents).map(|user| (user, serving.to_path_buf())));
                for server in &product.servers {
                    users.push((server, tunnel.agents_authority_file().to_path_buf()));
                    users.push((server, tunnel.frontends_authority_file().to_path_buf()));
                }
            }
        }
        users
    }
}
