//! Makes and keeps links.
//!
//! One task per `--server` resolves its name, and one task per address makes and keeps the links
//! through it ([`keeper`]). Behind an address may be one server, or a load balancer and any number
//! of servers. Only the answer says which server answered. [`Links`] has the existing links.

mod attempt;
mod backoff;
mod keeper;
mod name;

use std::sync::Arc;
use std::time::Duration;

use net::drain::Drain;
use net::random::identifier;
use rustls_pki_types::ServerName;
use tokio::sync::Notify;
use tunnel::{ClusterName, Destination, Settings};

use crate::credentials::Credentials;
use crate::forward::Forwarder;
use crate::links::Links;
use crate::metrics::Metrics;
use crate::outbound::Outbound;

/// The state that all keepers share.
#[derive(Debug)]
pub struct Connector {
    pub cluster: ClusterName,
    /// See [`process_name`].
    pub agent: String,
    /// Replaces the server's host for verification.
    pub server_name: Option<ServerName<'static>>,
    pub credentials: Arc<Credentials>,
    pub outbound: Arc<Outbound>,
    pub settings: Settings,
    pub links: Arc<Links>,
    pub forwarder: Arc<Forwarder>,
    pub metrics: Metrics,
    pub drain: Drain,
}

/// One `--server`.
#[derive(Debug)]
struct Server {
    /// The name that the operator wrote.
    name: Destination,
    /// The name for its certificate.
    verified: ServerName<'static>,
    /// Notified by keepers that failed or were asked to leave: the name may resolve to other
    /// addresses by now.
    look_again: Notify,
}

/// Timeout for TCP, proxy and TLS together, and again for the registration.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of the part taken from the host's name; with the random part, the name stays within the 64
/// of `Tunnel-Agent`.
const LONGEST_HOST: usize = 40;

/// The name by which servers distinguish this process from others of the same cluster
/// (`Tunnel-Agent`): the pod's name, which operators recognize, and a random part, because a
/// restarted process is another one.
pub fn process_name(variable: impl Fn(&str) -> Option<String>) -> String {
    let host = variable("HOSTNAME").unwrap_or_default();
    let fit = |byte: &char| byte.is_ascii_alphanumeric() || matches!(byte, '.' | '_' | '-');
    let host: String = host.chars().filter(fit).take(LONGEST_HOST).collect();
    let random = identifier();
    if host.is_empty() { random } else { format!("{host}-{random}") }
}

// === impl Connector ===

impl Connector {
    /// Makes and keeps links to `server` until the drain, and then until they have ended.
    pub async fn run(self: Arc<Self>, server: Destination) {
        let verified = self.server_name.clone().or_else(|| ServerName::try_from(server.host().to_owned()).ok());
        let Some(verified) = verified else {
            tracing::error!(%server, "this host cannot be verified: give --server-name");
            return;
        };
        let server = Arc::new(Server { name: server, verified, look_again: Notify::new() });
        name::follow(self, server).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let name = |host: &str| process_name(|_| Some(host.to_owned()));
        let pod = name("tunnel-agent-7d4b9-x2x\n y");
        assert!(pod.starts_with("tunnel-agent-7d4b9-x2xy-"), "{pod}");
        assert!(name(&"x".repeat(300)).len() <= 64);
        assert_ne!(process_name(|_| None), process_name(|_| None));
    }
}
