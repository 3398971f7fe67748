//! The admin endpoint: probes, metrics, the list of clusters, links and streams, and commands that
//! end them.
//!
//! Every client that can connect gets the probes and the metrics. The list contains names and
//! addresses, and commands close links, so paths under `/debug/` answer only clients on the same
//! machine or in the same pod (`kubectl port-forward` counts), and no web page in a browser there.

mod command;
mod table;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use telemetry::admin::nearby::{refuse_remote, wants_json};
use telemetry::admin::{self, Answer, Endpoint, Probes, answer, method_not_allowed, text};
use tokio::runtime::Handle;

use self::command::Command;
use crate::shared::Shared;

/// Conditions that can make a tunnel-server not ready, in the order in which `/readyz` lists them.
pub const CONDITIONS: [&str; 3] = ["agents", "frontends", "shutdown"];

const LINKS: &str = "/debug/links";

/// The running endpoint. Ends when dropped.
#[derive(Debug)]
pub struct Admin(Endpoint);

/// Answers requests.
struct Endpoints {
    shared: Shared,
    probes: Probes,
}

/// Binds `listen` and serves on `runtime` from now on.
pub fn start(listen: SocketAddr, shared: Shared, runtime: &Handle) -> anyhow::Result<Admin> {
    let probes = Probes {
        readiness: shared.readiness.clone(),
        conditions: &CONDITIONS,
        metrics: telemetry::metrics::Metrics::clone(&shared.exposition),
    };
    let endpoints = Arc::new(Endpoints { shared, probes });
    let handler = move |request| {
        let endpoints = Arc::clone(&endpoints);
        async move { endpoints.answer(&request).await }
    };
    let endpoint = admin::serve(listen, runtime, handler).with_context(|| format!("the admin endpoint {listen}"))?;
    Ok(Admin(endpoint))
}

// === impl Admin ===

impl Admin {
    /// The listener's address, with the real port even if the configuration has port 0.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

// === impl Endpoints ===

impl Endpoints {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        if let Some(answer) = self.probes.answer(request, || self.details()) {
            return answer;
        }
        let path = request.uri().path();
        if path.starts_with("/debug/")
            && let Some(refused) = refuse_remote(request)
        {
            return refused;
        }
        if path == LINKS {
            return self.links(request);
        }
        match Command::parse(path) {
            Some(_) if request.method() != Method::POST => method_not_allowed("POST"),
            Some(command) => command.run(&self.shared.registry).await,
            None => text(StatusCode::NOT_FOUND, HELP),
        }
    }

    /// JSON if the client asks for it, otherwise a table for people.
    fn links(&self, request: &Request<Incoming>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return method_not_allowed("GET, HEAD");
        }
        let listing = self.shared.registry.list();
        if !wants_json(request) {
            return text(StatusCode::OK, table::of(&listing));
        }
        match serde_json::to_vec(&listing) {
            Ok(json) => answer(StatusCode::OK, HeaderValue::from_static("application/json"), json),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }

    /// For `/readyz?verbose`. A server without links is ready all the same, but operators look for
    /// links there.
    fn details(&self) -> String {
        let (clusters, streams) = (self.shared.registry.linked().len(), self.shared.registry.streams());
        format!("[i]{clusters} clusters linked, {streams} streams open\n")
    }
}

const HELP: &str = "there are:
  GET  /livez /readyz[?verbose] /metrics
  GET  /debug/links[?format=json]            clusters, agents, links and streams
  POST /debug/links/LINK/drain               its agent replaces it, its streams continue
  POST /debug/links/LINK/close               its streams are reset
  POST /debug/agents/AGENT/drain             the same for each of its links
  POST /debug/agents/AGENT/close
  POST /debug/streams/STREAM/close           it is reset
";

#[cfg(test)]
mod tests;
