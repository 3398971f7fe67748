//! The user as which a command acts on a registered member.

use std::path::PathBuf;
use std::time::Duration;

use api::cluster_name::ClusterName;
use tokio::time::timeout;

use super::{Member, Options};
use crate::contexts;
use crate::output;
use crate::session::Session;
use crate::trouble::Result;

/// Time for a guessed context to show where it leads: a context that leads nowhere is not waited
/// for.
const LOOK: Duration = Duration::from_secs(3);

/// How the person reaches it.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub struct Acting {
    /// Context of the member [default: the context with the cluster's name, if it leads to the
    /// registered member, else the registered credential]
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,
    /// Kubeconfig of the member [default: that of the hub]
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,
}

// === impl Acting ===

impl Acting {
    /// The member of `cluster`. Its uid is `uid` according to the cluster's Secret.
    pub async fn on(&self, session: &Session, cluster: &ClusterName, uid: Option<&str>) -> Result<Member> {
        if let Some(member) = self.given(session, cluster).await? {
            return Ok(member);
        }
        match called_so(session, cluster, uid).await {
            Some(member) => {
                output::say(&format!("Using your context {cluster} for the member"));
                Ok(member)
            }
            None => Member::through(session, cluster).await,
        }
    }

    /// The member, if the person says how to reach it.
    pub async fn given(&self, session: &Session, cluster: &ClusterName) -> Result<Option<Member>> {
        let Self { member_context, member_kubeconfig } = self.clone();
        if member_context.is_none() && member_kubeconfig.is_none() {
            return Ok(None);
        }
        let (kubeconfig, context) = Options { member_context, member_kubeconfig }.read(session, cluster.as_str())?;
        Member::by(session, &kubeconfig, &context).await.map(Some)
    }
}

/// Reaches the member with the context that has the cluster's name. The name does not prove that it
/// is the member; the uid does.
async fn called_so(session: &Session, cluster: &ClusterName, uid: Option<&str>) -> Option<Member> {
    let uid = uid?;
    let context = contexts::named(&session.kubeconfig, Some(cluster.as_str())).ok()?;
    let member = Member::by(session, &session.kubeconfig, &context.name).await.ok()?;
    let known = timeout(LOOK, member.uid()).await.ok()?.ok()?;
    (known == uid).then_some(member)
}
