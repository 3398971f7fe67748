//! The gateway is asked to leave: those that rely on it learn of it in time, requests in flight
//! come to their end, the rest is cut off.

mod deadline;
mod finishing;
mod readiness;

use kit::client::Client;
use system_tests::prelude::*;
use tokio::task::JoinHandle;

/// Longer than anything here takes by itself: a test that ends sooner did not wait for it.
const LONG: Duration = Duration::from_secs(30);

/// A gateway that is leaving.
struct Leaving {
    client: Client,
    ended: JoinHandle<()>,
}

// === impl Leaving ===

impl Leaving {
    /// Starts the shutdown and returns once no new connection is let in.
    async fn start(testbed: Testbed) -> Self {
        let leaving = Self { client: testbed.client(), ended: tokio::spawn(testbed.stop()) };
        let refused = async || tokio::net::TcpStream::connect(leaving.client.address()).await.is_err();
        becomes(WAIT, "new connections being refused", refused).await;
        leaving
    }

    fn has_ended(&self) -> bool {
        self.ended.is_finished()
    }

    /// Waits for the end.
    async fn ended(self) {
        within(WAIT, "the end of the gateway", self.ended).await.expect("it stops in time");
    }
}
