//! An agent without a program around it: it registers, serves streams, and connects them to one
//! address.

use std::net::SocketAddr;
use std::sync::Arc;

use kit::client::Client;
use kit::pki::{ALPN_H1, Authority, Issued, Trust};
use kit::wait::WAIT;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tunnel::bridge::bridge;
use tunnel::register::{RegisterError, Registration, register};
use tunnel::{ClusterName, Gauge, Incoming, Serving, Settings, serve};

/// A linked agent. Dropping it is its crash.
pub struct Agent {
    serving: Serving,
    task: JoinHandle<()>,
}

// === impl Agent ===

impl Agent {
    /// Links to `gateway`, whose certificate is of `serving`, as the agent of `cluster`; streams
    /// lead to `member`.
    pub async fn link(
        gateway: SocketAddr,
        serving: &Authority,
        identity: &Issued,
        cluster: &str,
        member: SocketAddr,
    ) -> Result<Self, RegisterError> {
        let stream = Client::new(gateway, Trust::Authority(serving), Some(identity)).tls(ALPN_H1).await?;
        let cluster = ClusterName::parse(cluster).expect("a name");
        let registration = Registration { cluster, agent: "agent-1".into(), link: 0, version: "test".into() };
        let registered = register(stream, "localhost", &registration, None, WAIT).await?;
        let serving = Serving::default();
        let controlled = serving.clone();
        let task = tokio::spawn(async move {
            let handler = move |incoming| answer(incoming, member);
            let _ = serve(registered.io, &Settings::default(), controlled, handler).await;
        });
        Ok(Self { serving, task })
    }

    /// Completes when the gateway has asked it to link elsewhere.
    pub async fn asked_to_leave(&self) {
        self.serving.asked_to_leave().await;
    }

    /// GOAWAY.
    pub fn drain(&self) {
        self.serving.drain();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(incoming: Incoming, member: SocketAddr) {
    assert_eq!(incoming.destination.to_string(), super::API_SERVER);
    let tcp = TcpStream::connect(member).await.expect("the member listens");
    if let Ok(stream) = incoming.accept() {
        let _ = bridge(stream, tcp, Arc::new(Gauge::default()), true).await;
    }
}
