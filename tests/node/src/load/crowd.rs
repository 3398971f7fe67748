//! Many concurrent watches, on as few connections as clients use.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use chaos_tests::caller::{Caller, Connections};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{NAMESPACE, Target, account, base, namespace};

/// Watches on one connection: API servers allow 100 streams.
const STREAMS: usize = 100;
/// Time for all watches to be open, and for each to see an event.
const LIMIT: Duration = Duration::from_mins(2);

/// Open watches, which end when dropped.
pub struct Crowd<'a> {
    runtime: Runtime,
    target: Target<'a>,
    watches: Vec<Incoming>,
}

// === impl Crowd ===

impl<'a> Crowd<'a> {
    /// Opens `count` watches on one cluster.
    pub fn start(hub: &crate::cluster::Cluster, target: Target<'a>, count: usize) -> Result<Self> {
        let token = account(hub)?;
        namespace(target.1)?;
        let path = format!("{}/api/v1/namespaces/{NAMESPACE}/secrets?watch=true", base(target.0));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let opened = async {
            let mut opening = JoinSet::new();
            for _ in 0..count / STREAMS {
                let (address, authority) = (hub.server.address(), hub.server.authority());
                let caller = Arc::new(Caller::with_token(address, Some(authority), &token, Connections::Shared));
                let path = path.clone();
                opening.spawn(async move { open(&caller, &path).await });
            }
            let mut watches = Vec::new();
            while let Some(opened) = opening.join_next().await {
                watches.extend(opened??);
            }
            Ok::<_, anyhow::Error>(watches)
        };
        let watches = runtime.block_on(async { timeout(LIMIT, opened).await }).context("watches")??;
        ensure!(watches.len() == count, "{} watches", watches.len());
        Ok(Self { runtime, target, watches })
    }

    /// Checks that each watch sees an object that is created now.
    pub fn check(mut self) -> Result<()> {
        let made = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "crowd", "namespace": NAMESPACE}});
        self.target.1.server.apply(&[made])?;
        let seen = async {
            for watch in &mut self.watches {
                let mut text = Vec::new();
                while !text.windows(7).any(|part| part == b"\"crowd\"") {
                    let frame = watch.frame().await.context("a watch has ended")??;
                    text.extend_from_slice(&frame.into_data().unwrap_or_default());
                }
            }
            Ok::<_, anyhow::Error>(())
        };
        self.runtime.block_on(async { timeout(LIMIT, seen).await }).context("an event for each")?
    }
}

async fn open(caller: &Caller, path: &str) -> Result<Vec<Incoming>> {
    let mut watches = Vec::new();
    for _ in 0..STREAMS {
        let opened = caller.open(Method::GET, path, Bytes::new()).await;
        let response = opened.map_err(|failure| anyhow!("watch {}: {failure:?}", watches.len()))?;
        ensure!(response.status() == StatusCode::OK, "{}", response.status());
        watches.push(response.into_body());
    }
    Ok(watches)
}
