//! Several clients with a cache each, all compared with the same Secrets.

use std::path::Path;

use hub_tests::follower::{Beginning, Follower};
use hub_tests::informer::{Informer, Report};
use hub_tests::prelude::*;

use super::churn::Churn;

/// The clients.
#[derive(Default)]
pub(super) struct Crew {
    informers: Vec<(String, Informer)>,
    followers: Vec<(String, Follower)>,
}

// === impl Crew ===

impl Crew {
    /// Adds one client of each kind for each resource, all with the server and the credential of
    /// `kubeconfig`.
    pub(super) fn join(&mut self, testbed: &Testbed, place: &str, kubeconfig: &Path) -> Result<()> {
        for (kind, resource) in [("ClusterGateway", "clustergateways"), ("VirtualCluster", "virtualclusters")] {
            let name = format!("{resource}-{place}");
            self.informers.push((name.clone(), testbed.start_informer(&name, kubeconfig, resource)?));
            for beginning in [Beginning::List, Beginning::Stream] {
                let follower = Follower::start(kubeconfig, kind, resource, beginning)?;
                self.followers.push((format!("kube-rs with a {beginning:?} of {name}"), follower));
            }
        }
        Ok(())
    }

    /// Waits until every cache equals the Secrets.
    pub(super) fn equal(&mut self, churn: &Churn, limit: Duration) -> Result<()> {
        for (name, informer) in &mut self.informers {
            wait::until("a cache of client-go", limit, || {
                let (report, truth) = (informer.report()?, churn.truth()?);
                let found = churn.own(report.items.clone());
                ensure!(report.synced && found == truth, "it has {found:#?}\ninstead of {truth:#?}\nafter {report:?}");
                Ok(())
            })
            .with_context(|| name.clone())?;
        }
        for (name, follower) in &self.followers {
            wait::until("a cache of kube-rs", limit, || {
                let (found, truth) = (churn.own(follower.cache()), churn.truth()?);
                ensure!(follower.starts() > 0 && found == truth, "it has {found:#?}\ninstead of {truth:#?}");
                Ok(())
            })
            .with_context(|| name.clone())?;
        }
        Ok(())
    }

    /// A report of each informer.
    pub(super) fn reports(&mut self) -> Result<Vec<(String, Report)>> {
        self.informers.iter_mut().map(|(name, informer)| Ok((name.clone(), informer.report()?))).collect()
    }

    /// kube-rs' watchers.
    pub(super) fn followers(&self) -> impl Iterator<Item = (&str, &Follower)> {
        self.followers.iter().map(|(name, follower)| (&**name, follower))
    }
}
