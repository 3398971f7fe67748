//! Thousands of clusters on a hub, all of them the same upstream, in a namespace of their own.

mod secrets;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::secret::Endpoint;
use bytes::Bytes;
use kit::pki::Authority;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use self::secrets::Secrets;
pub use self::secrets::rights;
use crate::caller::Caller;
use crate::stand_in::StandIn;
use crate::testbed::HubSide;
use crate::watch::server::ECHO;

/// The first one, through which gateways are tried.
pub const FIRST: &str = "c-00000";
/// For a gateway to use the newest objects of the hub.
const FOLLOW_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

/// Trust anchors for the certificates of clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Roots {
    /// One authority for all clusters: they can all be used.
    Shared,
    /// One for each, as real clusters have; only the first is the upstream's, so that only the
    /// first can be used.
    Own,
}

/// A namespace full of clusters.
pub struct Clusters {
    pub namespace: String,
    pub count: usize,
    /// The hub's administrator.
    hub: Caller,
}

/// Name of the cluster `number`.
pub fn name(number: usize) -> String {
    format!("c-{number:05}")
}

/// Path of [`ECHO`] on the cluster `number`, on a gateway.
pub fn path(number: usize) -> String {
    format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy{ECHO}", name(number))
}

/// Paths of the first `count` clusters.
pub fn paths(count: usize) -> Arc<[String]> {
    (0..count).map(path).collect()
}

// === impl Clusters ===

impl Clusters {
    /// Registers `count` clusters that are `upstream` in a new `namespace`, which the gateways'
    /// account may read. `runtime` sends the requests; not to be called on a runtime.
    pub fn register(
        runtime: &Runtime,
        side: &HubSide,
        namespace: &str,
        count: usize,
        upstream: &StandIn,
        roots: Roots,
    ) -> Result<Self> {
        let server = &side.hub.server;
        server.create_namespace(namespace)?;
        side.hub.apply(&rights(namespace))?;
        let hub = Caller::with_certificate(server.address(), server.authority(), server.admin());
        let endpoint = Endpoint::parse(&format!("https://{}", upstream.address), false)?;
        let secrets = Secrets { endpoint, namespace: namespace.to_owned() };
        let shared = upstream.authority.root_pem();
        let root = move |number: usize| match roots {
            Roots::Own if number > 0 => Authority::new(&name(number)).root_pem(),
            Roots::Own | Roots::Shared => shared.clone(),
        };
        runtime.block_on(secrets.create(&hub, count, Arc::new(root))).context("cannot register the clusters")?;
        Ok(Self { namespace: namespace.to_owned(), count, hub })
    }

    /// Gives the cluster `number` another token on the hub.
    pub async fn rotate(&self, number: usize, token: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}/secrets/{}", self.namespace, name(number));
        let request = self.hub.merge(&path, &json!({"stringData": {"token": token}}))?;
        let connection = self.hub.connect().await?;
        self.hub.ask(&connection, request).await.map(drop)
    }

    /// Rotates the token of the first cluster; how long after the hub's answer a request, sent
    /// again and again, has been answered with the new one.
    pub async fn follow(&self, gateway: &Caller, token: &str) -> Result<Duration> {
        let connection = gateway.connect().await?;
        let (path, expected) = (path(0), Bytes::from(format!("Bearer {token}")));
        self.rotate(0, token).await?;
        let start = Instant::now();
        while gateway.ask(&connection, gateway.get(&path)?).await? != expected {
            ensure!(start.elapsed() < FOLLOW_LIMIT, "the gateway does not use the new token");
            sleep(PAUSE).await;
        }
        Ok(start.elapsed())
    }
}

/// A token as long as a ServiceAccount's, and unlike any other.
pub fn token(number: usize) -> String {
    const LENGTH: usize = 900;
    format!("{number:0>LENGTH$}")
}
