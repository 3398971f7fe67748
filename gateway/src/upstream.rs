//! Sends requests to one member: its addresses and TLS, and per core a pool of connections to it,
//! with another one for requests that a workload behind the member's proxy responds to.
//!
//! An `Upstream` is immutable and belongs to one generation of a cluster's endpoint, trust and
//! client certificate. When a Secret changes any of these, a new `Upstream` takes its place and the
//! old one's connections close as their last requests end: no request ever travels with one
//! generation's credential over another's connection.

pub mod addresses;
pub mod aside;
pub mod body;
pub mod circuit;
pub mod connect;
mod error;
pub mod h1;
pub mod h2;
mod lost;
pub mod pool;
mod shed;

use std::sync::{Arc, OnceLock};

use http::Response;
use net::transport::Transport;
use traces::{Span, Trace};

pub use self::body::UpstreamBody;
pub use self::connect::{ConnectError, Dialer, MAX_DIALS, Target};
pub use self::error::SendError;
pub use self::h1::{HEADER_BYTES, HEADER_LINES, HeldIncoming, Reading};
pub use self::lost::{Lost, Truncated};
use self::pool::{Lease, Pool};
pub use self::shed::{ConnectionBytes, Counted};
use crate::headers::size;
use crate::metrics::ClusterMetrics;
use crate::request_body::BoxedRequest;
use crate::spans;

/// Everything needed to send requests to one member.
pub struct Upstream {
    target: Arc<Target>,
    metrics: Arc<ClusterMetrics>,
    /// One per core, so that no request waits for another core's lock or task.
    pools: Box<[Pools]>,
}

/// One core's pools.
struct Pools {
    members: Arc<Pool>,
    /// Created for the first such request, because few members get any.
    workloads: OnceLock<Arc<Pool>>,
}

/// Who writes the head of a response.
///
/// A member passes on the heads of the pods, Services and kubelets behind its `…/proxy/…`, up to 10
/// MiB, and nothing else may come between the frames of a head (RFC 9113 §4.3): on a slow line, one
/// such response delays all others on its connection for minutes, and a head beyond a limit ends
/// the connection. So these requests have connections of their own, apart from everybody's watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    Member,
    Workload,
}

// === impl Upstream ===

impl Upstream {
    pub fn new(target: Target, cores: usize, metrics: &Arc<ClusterMetrics>) -> Self {
        let target = Arc::new(target);
        let pools = (0..cores).map(|core| Pools {
            members: Pool::new(Arc::clone(&target), core, Arc::clone(metrics)),
            workloads: OnceLock::new(),
        });
        Self { pools: pools.collect(), target, metrics: Arc::clone(metrics) }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sends one request and returns once the response head is here. The request body is streamed
    /// meanwhile, and the response body continues to drive it. Dropping the future or the body
    /// cancels the exchange. A member may continue a request that was cancelled unanswered: the
    /// request counts as `lingers` for as long as that is possible.
    ///
    /// `request` has a URI in origin-form and no `Host`; both are set here as the protocol needs
    /// them.
    pub async fn send(
        &self,
        core: usize,
        author: Author,
        mut request: BoxedRequest,
        lingers: h2::Lingers<'_>,
        trace: Option<&Trace>,
    ) -> Result<Response<UpstreamBody>, SendError> {
        /// A connection may turn out to be closing when it gets the request. Nothing was sent then,
        /// so the next try is safe. More than a few in a row mean that the member is shutting down.
        const ATTEMPTS: usize = 4;
        let head = size::of_request(&request).map_err(SendError::Unfit)?;
        for _ in 0..ATTEMPTS {
            let (unsent, reason) = match self.pool(core, author).acquire(trace).await? {
                Lease::H2(lease) => match h2::send(lease, &self.target, (request, head), lingers).await? {
                    h2::Sent::Response(response) => {
                        return checked(response.map(UpstreamBody::H2));
                    }
                    h2::Sent::NotSent(unsent, reason) => (unsent, reason),
                },
                Lease::H1(lease) => match Box::pin(h1::send(lease, &self.target, request)).await? {
                    h1::Sent::Response(response) => {
                        return checked(response.map(UpstreamBody::H1));
                    }
                    h1::Sent::NotSent(unsent, reason) => (unsent, reason),
                },
            };
            tracing::debug!(address = self.target.address(), %reason, "request not sent, trying another connection");
            request = unsent;
        }
        Err(SendError::Refused)
    }

    fn pool(&self, core: usize, author: Author) -> &Pool {
        let Pools { members, workloads } = &self.pools[core];
        match author {
            Author::Member => members,
            Author::Workload => {
                workloads.get_or_init(|| Pool::new(Arc::clone(&self.target), core, Arc::clone(&self.metrics)))
            }
        }
    }

    /// Dials a connection for one upgrade, with HTTP/1.1.
    pub async fn dial_upgrade(&self, held: &ConnectionBytes, trace: Option<&Trace>) -> Result<Transport, ConnectError> {
        let span = self.target.span(trace);
        let dialled = self.target.connect_http1(held, span.as_ref().map(Span::trace)).await;
        spans::ended(span, &dialled, ConnectError::kind);
        dialled
    }
}

/// The response, if its head may be passed on.
fn checked(response: Response<UpstreamBody>) -> Result<Response<UpstreamBody>, SendError> {
    size::of_fields(response.headers()).map_err(SendError::UnfitAnswer)?;
    Ok(response)
}
