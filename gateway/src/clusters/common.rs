//! What all clusters are made with.

use std::sync::Arc;
use std::time::Duration;

use super::issuing::Issuing;
use crate::exchange::Annotations;
use crate::limits::Loads;
use crate::metrics::Metrics;
use crate::tunnel::Tunnel;

/// Handed to every new cluster.
#[derive(Clone)]
pub struct Common {
    pub metrics: Metrics,
    /// What is under way at each cluster, for limits on it.
    pub loads: Arc<Loads>,
    /// Number of cores that serve requests.
    pub cores: usize,
    pub dial_timeout: Duration,
    pub issuing: Issuing,
    /// How identity rules in annotations are read.
    pub annotations: Annotations,
    /// Failed dials in a row that open a member's circuit; 0 means never.
    pub circuit_failures: u32,
    /// PEM bundle to verify `https` proxies against, in place of the system's roots.
    pub proxy_ca: Option<Arc<[u8]>>,
    /// The way to members that cannot be dialled.
    pub tunnel: Option<Arc<Tunnel>>,
}
