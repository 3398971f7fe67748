//! Clusters as Cluster API leaves them: a `Cluster`, and its kubeconfig in a Secret beside it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Method;
use hub_tests::tools;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::kubeconfigs::Kubeconfigs;
use crate::caller::Caller;
use crate::clusters::{name, token};
use crate::hub_objects::{self, MANY};
use crate::stand_in::StandIn;
use crate::testbed::HubSide;

const GROUP: &str = "cluster.x-k8s.io";
const VERSION: &str = "cluster.x-k8s.io/v1beta2";
const KINDS: &str = "cluster.x-k8s.io_clusters.yaml";
/// Namespace of the sources.
pub const NAMESPACE: &str = "registration-fleet";
/// As many writes at once as the controllers send: the hub's own rate is measured so.
const AT_ONCE: usize = 16;

pub struct Sources {
    pub count: usize,
    /// How long the hub took to write the Secrets.
    pub took: Duration,
    hub: Caller,
    kubeconfigs: Arc<Kubeconfigs>,
}

// === impl Sources ===

impl Sources {
    /// Installs upstream's kind and creates `count` clusters that are all `member`. `runtime` sends
    /// the requests; not to be called on a runtime.
    pub fn lay(runtime: &Runtime, side: &HubSide, count: usize, member: &StandIn) -> Result<Self> {
        let server = &side.hub.server;
        for kind in tools::cluster_api_kinds(KINDS)? {
            side.install(&kind)?;
        }
        server.create_namespace(NAMESPACE)?;
        let hub = Caller::with_certificate(server.address(), server.authority(), server.admin());
        let kubeconfigs = Kubeconfigs::new(format!("https://{}", member.address), &member.authority);
        let mut sources = Self { count, took: Duration::ZERO, hub, kubeconfigs: Arc::new(kubeconfigs) };
        runtime.block_on(sources.create()).context("cannot create the sources")?;
        Ok(sources)
    }

    async fn create(&mut self) -> Result<()> {
        let path = format!("/apis/{VERSION}/namespaces/{NAMESPACE}/clusters");
        let clusters = path.clone();
        let cluster = move |number: usize| {
            let spec = json!({"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}});
            let object = json!({"apiVersion": VERSION, "kind": "Cluster", "spec": spec,
                "metadata": {"name": name(number), "labels": {"region": "north"}}});
            Ok((clusters.clone(), object))
        };
        hub_objects::create(&self.hub, self.count, Arc::new(cluster)).await?;
        let uids = Arc::new(self.uids(&path).await?);
        let kubeconfigs = Arc::clone(&self.kubeconfigs);
        let secret = move |number: usize| {
            let uid = uids.get(&name(number)).context("a Cluster without uid")?;
            Ok((secrets(), document(number, uid, &kubeconfigs.of(number, &token(number)))))
        };
        let begin = Instant::now();
        hub_objects::create_at_once(&self.hub, self.count, AT_ONCE, Arc::new(secret)).await?;
        self.took = begin.elapsed();
        Ok(())
    }

    async fn uids(&self, path: &str) -> Result<HashMap<String, String>> {
        let connection = self.hub.connect().await?;
        let list: Value = serde_json::from_slice(&self.hub.ask(&connection, self.hub.get(path)?).await?)?;
        let uid = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
            Some((text("name")?, text("uid")?))
        };
        Ok(list["items"].as_array().context("a list")?.iter().filter_map(uid).collect())
    }

    /// Deletes the cluster Secret of each, which is there, in `namespace`.
    pub async fn unregister(&self, namespace: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let delete = move |hub: &Caller, number: usize| {
            hub.request(Method::DELETE, &format!("{path}/{}", name(number)), Bytes::new())
        };
        hub_objects::send(&self.hub, self.count, MANY, Arc::new(delete)).await
    }

    /// Rewrites all with the same content, and another annotation.
    pub async fn touch(&self, text: String) -> Result<()> {
        let touch = move |hub: &Caller, number: usize| {
            hub.merge(&path(number), &json!({"metadata": {"annotations": {"bench": text}}}))
        };
        hub_objects::send(&self.hub, self.count, MANY, Arc::new(touch)).await
    }

    /// The number of the cluster with a token that `turn` selects.
    pub fn with_token(&self, turn: usize) -> usize {
        let all = self.count / 2;
        2 * (turn % all) + 1
    }

    /// Gives the cluster `number` another token.
    pub async fn rotate(&self, connection: &SendRequest<Bytes>, number: usize, token: &str) -> Result<()> {
        let kubeconfig = self.kubeconfigs.of(number, token);
        let request = self.hub.merge(&path(number), &json!({"stringData": {"value": kubeconfig}}))?;
        self.hub.ask(connection, request).await.map(drop)
    }

    pub async fn connect(&self) -> Result<SendRequest<Bytes>> {
        self.hub.connect().await
    }

    /// The hub's own metrics.
    pub async fn hub_metrics(&self) -> Result<String> {
        let connection = self.hub.connect().await?;
        let text = self.hub.ask(&connection, self.hub.get("/metrics")?).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Rotates `count` tokens evenly over `time`, from turn `first` on.
    pub async fn rotate_all(self: &Arc<Self>, first: usize, count: usize, time: Duration) -> Result<()> {
        // Fewer than there are between two of the same cluster: the later one is to be the last.
        let at_once = MANY.min(self.count / 8).max(1);
        let (connection, room) = (self.connect().await?, Arc::new(Semaphore::new(at_once)));
        let mut ticks = interval(time / u32::try_from(count)?);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut writes = JoinSet::new();
        for turn in first..first + count {
            ticks.tick().await;
            let permit = Arc::clone(&room).acquire_owned().await?;
            let (sources, connection) = (Arc::clone(self), connection.clone());
            writes.spawn(async move {
                let _permit = permit;
                sources.rotate(&connection, sources.with_token(turn), &token(turn)).await
            });
            while let Some(done) = writes.try_join_next() {
                done??;
            }
        }
        while let Some(done) = writes.join_next().await {
            done??;
        }
        Ok(())
    }
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

/// Path of the kubeconfig Secret of the cluster `number`.
fn path(number: usize) -> String {
    format!("{}/{}-kubeconfig", secrets(), name(number))
}

fn document(number: usize, uid: &str, kubeconfig: &str) -> Value {
    let name = name(number);
    let owner = json!({"apiVersion": VERSION, "kind": "Cluster", "name": name, "uid": uid});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{name}-kubeconfig"), "namespace": NAMESPACE,
            "labels": {format!("{GROUP}/cluster-name"): name}, "ownerReferences": [owner]},
        "stringData": {"value": kubeconfig},
    })
}
