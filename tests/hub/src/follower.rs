//! kube-rs' watcher and reflector on a resource of the gateway's group, in a separate thread.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use futures_util::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt as _, reflector as reflect};
use kube::{Client, Config, ResourceExt as _};
use tokio::sync::oneshot;

use crate::informer::{Cache, Entry};

/// How it gets the initial objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// A list, then a watch from its resource version on.
    List,
    /// One watch with `sendInitialEvents`.
    Stream,
}

/// Counts of events.
#[derive(Debug, Default)]
struct Counts {
    starts: AtomicU64,
    expired: AtomicU64,
    failures: AtomicU64,
}

/// A running watcher; it ends on drop.
#[derive(Debug)]
pub struct Follower {
    store: Store<DynamicObject>,
    counts: Arc<Counts>,
    _stop: oneshot::Sender<()>,
}

// === impl Follower ===

impl Follower {
    /// Starts one for `kind` and its `plural`, with the server and the credential of `kubeconfig`.
    pub fn start(kubeconfig: &Path, kind: &str, plural: &str, beginning: Beginning) -> Result<Self> {
        let kind = GroupVersionKind::gvk("cluster.core.oam.dev", "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let counts = Arc::new(Counts::default());
        let writer = reflector::store::Writer::new(resource.clone());
        let store = writer.as_reader();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(client(kubeconfig))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let counted = Arc::clone(&counts);
        let follow = async move {
            let config = match beginning {
                Beginning::List => watcher::Config::default(),
                Beginning::Stream => watcher::Config::default().streaming_lists(),
            };
            let events = watcher(Api::all_with(client, &resource), config).default_backoff();
            let mut events = pin!(reflect(writer, events));
            while let Some(event) = events.next().await {
                counted.count(&event);
            }
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = follow => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { store, counts, _stop: stop })
    }

    /// The current content of its cache.
    pub fn cache(&self) -> Cache {
        self.store.state().iter().map(|object| (object.name_any(), entry(object))).collect()
    }

    /// How often it started over with all objects.
    pub fn starts(&self) -> u64 {
        self.counts.starts.load(Ordering::Relaxed)
    }

    /// How often the server answered that its resource version has expired (code 410).
    pub fn expired(&self) -> u64 {
        self.counts.expired.load(Ordering::Relaxed)
    }

    /// How often any other error occurred.
    pub fn failures(&self) -> u64 {
        self.counts.failures.load(Ordering::Relaxed)
    }
}

// === impl Counts ===

impl Counts {
    fn count(&self, event: &watcher::Result<watcher::Event<DynamicObject>>) {
        let counter = match event {
            Ok(watcher::Event::InitDone) => &self.starts,
            Ok(_) => return,
            Err(watcher::Error::WatchError(status)) if status.code == 410 => &self.expired,
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410 => &self.expired,
            Err(error) => {
                tracing::warn!(%error, "a watcher of the tests");
                &self.failures
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client of kube-rs with the server and the credential of `kubeconfig`. It must be created on
/// the runtime that will drive it.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let text = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("cannot set up the client")
}

fn entry(object: &DynamicObject) -> Entry {
    // The field of a ClusterGateway, and that of a VirtualCluster.
    let places = ["/spec/access/endpoint/const/address", "/spec/endpoint"];
    let endpoint = places.iter().find_map(|place| object.data.pointer(place)?.as_str()).unwrap_or_default();
    Entry {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        endpoint: endpoint.to_owned(),
    }
}
