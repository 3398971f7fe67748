//! Credentials issued by programs, for all clusters that have theirs from one.

use std::sync::Arc;
use std::time::Duration;

use exec_credential::{Commands, Credentials, Plugins, Runner};
use tokio::runtime::Handle;

/// How credentials are issued.
#[derive(Debug)]
pub struct Options {
    pub commands: Commands,
    /// Of one run.
    pub timeout: Duration,
}

/// Runs programs, and keeps what they issue. Cheap to clone.
#[derive(Clone)]
pub struct Issuing {
    pub plugins: Arc<Plugins>,
    pub credentials: Arc<Credentials>,
}

// === impl Issuing ===

impl Issuing {
    /// Programs run as tasks of `runtime`.
    pub fn new(options: &Options, runtime: &Handle) -> Self {
        let plugins = Arc::new(Plugins::new(options.commands.clone(), options.timeout));
        let credentials = Credentials::new(runtime.clone(), Arc::clone(&plugins) as Arc<dyn Runner>);
        Self { plugins, credentials }
    }
}
