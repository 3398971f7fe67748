//! State that all clusters share, such as the programs that issue credentials.

use std::sync::Arc;
use std::time::Duration;

use exec_credential::{Commands, Credentials, Plugins, Runner};
use tokio::runtime::Handle;

use crate::exchange::Annotations;
use crate::holding::Budget;
use crate::limits::Loads;
use crate::metrics::Metrics;
use crate::tunnel::Tunnel;

/// Passed to every new cluster.
#[derive(Clone)]
pub struct Common {
    pub metrics: Metrics,
    /// The requests in flight at each cluster, for its limits.
    pub loads: Arc<Loads>,
    /// Number of cores that serve requests.
    pub cores: usize,
    pub dial_timeout: Duration,
    pub issuing: Issuing,
    /// How identity rules in annotations are read.
    pub annotations: Annotations,
    /// Failed dials in a row that open a member's circuit; 0 means never.
    pub circuit_failures: u32,
    /// PEM bundle to verify `https` proxies with, in place of the system's roots.
    pub proxy_ca: Option<Arc<[u8]>>,
    /// The tunnel to members that cannot be dialled.
    pub tunnel: Option<Arc<Tunnel>>,
    /// The budget of held bytes.
    pub budget: Budget,
}

/// How credentials are issued.
#[derive(Debug)]
pub struct IssuingOptions {
    pub commands: Commands,
    /// Timeout of one run.
    pub timeout: Duration,
}

/// Runs programs, and caches their credentials. Cheap to clone.
#[derive(Clone)]
pub struct Issuing {
    pub plugins: Arc<Plugins>,
    pub credentials: Arc<Credentials>,
}

// === impl Issuing ===

impl Issuing {
    /// Runs programs as tasks of `runtime`.
    pub fn new(options: &IssuingOptions, runtime: &Handle) -> Self {
        let plugins = Arc::new(Plugins::new(options.commands.clone(), options.timeout));
        let credentials = Credentials::new(runtime.clone(), Arc::clone(&plugins) as Arc<dyn Runner>);
        Self { plugins, credentials }
    }
}
