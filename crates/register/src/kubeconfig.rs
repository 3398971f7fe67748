//! A kubeconfig in an object of the hub. Its author wrote it for another machine.
//!
//! One of its contexts becomes a cluster. Files, programs that the operator does not allow,
//! impersonation, and duplicates are refused. The format is client-go's `clientcmd/api/v1`.

mod cluster;
mod document;
mod user;

use api::secret::{ClusterEndpoint, ClusterSecret, ConstEndpoint, Trust};
use serde::Deserialize as _;
use serde_json::Value;

use self::document::{Cluster, Document, Named, User};
use self::user::check_pair;
use crate::Refused;
pub use crate::endpoints::Rules;
use crate::reading::Reading;

/// Limit of a kubeconfig, in bytes. One context with certificates takes 6 KiB.
pub const MOST_BYTES: usize = 256 << 10;

/// The cluster of the current context, or of the only one. Does not look into its certificate and
/// private key: see [`checked`].
pub fn cluster(kubeconfig: &[u8], rules: &Rules) -> Result<ClusterSecret, Refused> {
    if kubeconfig.len() > MOST_BYTES {
        return Err(Refused::TooLarge(MOST_BYTES));
    }
    let document = Document::parse(std::str::from_utf8(kubeconfig).map_err(|_| Refused::NotText)?)?;
    let (cluster, user) = document.selected()?;
    let (endpoint, trust, tls_server_name) = cluster.read(rules)?;
    let mut secret = ClusterSecret::new(ClusterEndpoint::Const(endpoint), trust, user.credential(rules)?);
    secret.tls_server_name = tls_server_name;
    // Whatever the gateway could not use is refused here, where the refusal is reported, but for
    // what `checked` refuses.
    secret.document(None, "cluster")?;
    Ok(secret)
}

/// Refuses a cluster whose certificate and private key are not usable, or do not belong together.
/// [`cluster`] does not look into them: with an RSA key, it takes more time than everything else.
/// Content with the hash that a cluster's Secret has was checked before it was written.
pub fn checked(reading: Reading) -> Reading {
    match &reading {
        Reading::Register(cluster) => check_pair(&cluster.credential).map_or_else(Reading::Refused, |()| reading),
        _ => reading,
    }
}

/// Reads a kubeconfig's cluster part that an object contains by itself: endpoint, trust and the
/// name to verify.
pub(crate) fn stanza(cluster: &Value, rules: &Rules) -> Result<(ConstEndpoint, Trust, Option<String>), Refused> {
    Cluster::deserialize(cluster).map_err(|_| Refused::Shape("the provider's cluster"))?.read(rules)
}

// === impl Document ===

impl Document {
    /// The cluster and the user of the selected context.
    fn selected(&self) -> Result<(&Cluster, &User), Refused> {
        let contexts = self.contexts.as_deref().unwrap_or_default();
        let context = match (self.current_context.filled(), contexts) {
            (_, []) => return Err(Refused::NoContext),
            (Some(name), _) => named(contexts, name).ok_or(Refused::Missing("current-context"))?,
            (None, [only]) => only,
            (None, _) => return Err(Refused::NoCurrentContext),
        };
        let context = context.value.as_ref().ok_or(Refused::Empty("the context"))?;
        let name = context.cluster.filled().ok_or(Refused::Empty("the context's cluster"))?;
        let cluster = named(self.clusters.as_deref().unwrap_or_default(), name);
        let cluster = cluster.ok_or(Refused::Missing("the context's cluster"))?;
        let name = context.user.filled().ok_or(Refused::Empty("the context's user"))?;
        let user = named(self.users.as_deref().unwrap_or_default(), name);
        let user = user.ok_or(Refused::Missing("the context's user"))?;
        let cluster = cluster.value.as_ref().ok_or(Refused::Empty("the context's cluster"))?;
        Ok((cluster, user.value.as_ref().ok_or(Refused::NoCredential)?))
    }
}

/// The first wins, as in client-go.
fn named<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a Named<T>> {
    entries.iter().find(|entry| entry.name.filled() == Some(name))
}

/// A text field. Empty and absent mean the same, as in Go.
trait Filled {
    fn filled(&self) -> Option<&str>;
}

impl Filled for Option<String> {
    fn filled(&self) -> Option<&str> {
        self.as_deref().filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests;
