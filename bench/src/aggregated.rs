//! A real API server as member, and gateways that the hub's aggregator can be pointed at.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::secret::{ClusterEndpoint, ClusterSecret, Credential, Endpoint, Trust};
use hub_tests::control_plane::ApiServer;
use hub_tests::wait;
use kit::pki::Authority;
use serde_json::json;

use crate::caller::Caller;
use crate::clusters::rights;
use crate::figure::Target;
use crate::proxies::{self, Registered};
use crate::route::{Destination, Route};
use crate::testbed::{HubSide, Testbed};
use harness::usage::Tree;

/// A `ConfigMap` of about 1 KiB, on the member and on the hub.
pub const PATH: &str = "/api/v1/namespaces/default/configmaps/bench";
/// Answered at once to any caller with a credential.
const PROBE: &str = "/version";
/// Limit for the hub to follow a change of its APIService: it looks every few seconds at an API
/// that failed.
const FOLLOW_LIMIT: Duration = Duration::from_mins(1);

/// A real API server that clusters of the hub lead to.
pub struct Member {
    server: ApiServer,
    authority: Arc<Authority>,
    token: String,
    tree: Tree,
}

/// A gateway with a namespace of Secrets and a cluster of its own: an answer for that cluster comes
/// from this gateway.
pub struct Gateway {
    pub route: Route,
    /// Group of the API by which it is called.
    group: String,
}

/// A caller with every right on the hub.
pub fn administrator(hub: &HubSide) -> Caller {
    caller(&hub.hub.server)
}

fn caller(server: &ApiServer) -> Caller {
    Caller::with_certificate(server.address(), server.authority(), server.admin())
}

/// Makes a namespace called `cluster`, which the gateways' account may read, with the Secret of the
/// cluster in it.
pub fn register_alone(hub: &HubSide, cluster: &str, secret: &ClusterSecret) -> Result<()> {
    register_in(hub, cluster, cluster, secret)
}

/// Makes a `namespace`, which the gateways' account may read, with the Secret of the cluster in it.
pub fn register_in(hub: &HubSide, namespace: &str, cluster: &str, secret: &ClusterSecret) -> Result<()> {
    hub.hub.server.create_namespace(namespace)?;
    hub.hub.apply(&rights(namespace))?;
    hub.hub.apply(&[secret.document(Some(namespace), cluster)?])
}

// === impl Member ===

impl Member {
    /// Starts it beside the hub, and puts the `ConfigMap` on both.
    pub fn start(hub: &HubSide) -> Result<Self> {
        let mut server = ApiServer::start(hub.hub.server.launcher(), &hub.etcd, "member", "10.97.0.0/16", &[])?;
        server.wait_ready()?;
        let token = server.service_account_token("default", "gateway")?;
        let rights = "create clusterrolebinding gateway --clusterrole cluster-admin --serviceaccount default:gateway";
        server.kubectl().ok(rights)?;
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "bench", "namespace": "default"},
            "data": {"data": "x".repeat(768)},
        });
        server.kubectl().apply(&map.to_string())?;
        hub.hub.apply(&[map])?;
        let authority = Arc::clone(server.authority());
        let tree = Tree::new([server.process_id()]);
        Ok(Self { server, authority, token, tree })
    }

    /// A caller with every right on it.
    pub fn caller(&self) -> Caller {
        caller(&self.server)
    }
}

// === impl Gateway ===

impl Gateway {
    /// Starts `target` with `member` as its only cluster, called `cluster` as its namespace on the
    /// hub.
    pub fn start(testbed: &mut Testbed, member: &Member, target: Target, cluster: &str) -> Result<Self> {
        let endpoint = ClusterEndpoint::at(Endpoint::parse(&member.server.url(), false)?);
        let trust = Trust::Bundle(member.authority.root_pem().into());
        let secret = ClusterSecret::new(endpoint, trust, Credential::Token(member.token.clone().into()));
        register_alone(&*testbed.hub()?, cluster, &secret)?;
        let destination = Destination {
            cluster,
            address: member.server.address(),
            authority: &member.authority,
            tree: &member.tree,
            probe: PROBE,
            upgrades: false,
        };
        let registered = Registered { namespace: Some(cluster), token: Some(&member.token), ..Registered::default() };
        let route = proxies::start_registered(testbed, target, destination, registered)?;
        // The group is the first that a path names.
        let group = route.prefix.split('/').nth(2).unwrap_or_default().to_owned();
        Ok(Self { route, group })
    }

    /// Makes the hub send the API group here, and waits until `ask` is answered through it for this
    /// gateway's cluster.
    pub fn serve(&self, hub: &HubSide, ask: impl Fn(&str) -> Result<()>) -> Result<()> {
        hub.hub.register_gateway_for(&self.group, self.route.address.port(), &self.route.trusted)?;
        let path = format!("{}{PROBE}", self.route.prefix);
        wait::until("the hub to use the gateway", FOLLOW_LIMIT, || ask(&path))
    }
}
