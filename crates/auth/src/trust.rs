//! The current snapshots by which certificates are judged: the front proxy, and the CAs of clients.
//!
//! Writers (the ConfigMap watch, re-read files) replace whole snapshots, and requests load them
//! without waiting. Each snapshot has its own generation, which shows whether a remembered verdict
//! is outdated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use crate::ca_bundle::CaBundle;
use crate::identity_headers::IdentityHeaders;

/// How the front proxy is recognized, and in which headers it sends the user.
#[derive(Debug, Clone)]
pub(crate) struct FrontProxySettings {
    pub(crate) authorities: Arc<CaBundle>,
    /// Common names that the front proxy may have. If empty, any certificate of `authorities` is
    /// allowed.
    pub(crate) allowed_names: Vec<String>,
    pub(crate) headers: IdentityHeaders,
}

/// What is trusted now. Empty until the first publication.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    front_proxy: ArcSwapOption<Snapshot<FrontProxySettings>>,
    clients: ArcSwapOption<Snapshot<Arc<CaBundle>>>,
}

/// A published value and its generation, unique in the process.
#[derive(Debug)]
pub(crate) struct Snapshot<T> {
    pub(crate) generation: u64,
    pub(crate) value: T,
}

// === impl FrontProxySettings ===

impl FrontProxySettings {
    pub(crate) fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }
}

// === impl Trust ===

impl Trust {
    pub(crate) fn front_proxy(&self) -> Guard<Option<Arc<Snapshot<FrontProxySettings>>>> {
        self.front_proxy.load()
    }

    pub(crate) fn clients(&self) -> Guard<Option<Arc<Snapshot<Arc<CaBundle>>>>> {
        self.clients.load()
    }

    pub(crate) fn publish_front_proxy(&self, settings: FrontProxySettings) {
        self.front_proxy.store(Some(Snapshot::new(settings)));
    }

    pub(crate) fn publish_clients(&self, bundle: Arc<CaBundle>) {
        self.clients.store(Some(Snapshot::new(bundle)));
    }
}

// === impl Snapshot ===

impl<T> Snapshot<T> {
    fn new(value: T) -> Arc<Self> {
        static GENERATIONS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { generation: GENERATIONS.fetch_add(1, Ordering::Relaxed), value })
    }
}
