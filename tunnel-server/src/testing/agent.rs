//! An agent of tests, and how it behaves.

use std::net::SocketAddr;

use links::{Credential, Linked, Named};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tunnel::register::Registration;
use tunnel::{ClusterName, Hop, Incoming, Link, Reason, Refusal, Serving, Settings, Timing};

use super::DIALLED;
use crate::shared::Shared;

/// First bytes of `banner.member`.
pub const BANNER: &[u8] = b"SSH-2.0-member\r\n";

/// A link in a registry, and the events its agent saw.
pub struct Agent {
    _linked: Linked,
    /// Hosts of the dials that were cancelled.
    pub cancelled: mpsc::UnboundedReceiver<String>,
}

// === impl Agent ===

impl Agent {
    pub async fn link(shared: &Shared, cluster: &str) -> Self {
        let (server, agent) = tokio::io::duplex(64 * 1024);
        let (notices, cancelled) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let handler = move |incoming| behave(incoming, notices.clone());
            let _ = tunnel::serve(agent, &Settings::default(), Serving::default(), handler).await;
        });
        let link = Link::start(server, &shared.settings, Hop::Agent).await.expect("HTTP/2");
        let registration = Registration {
            cluster: ClusterName::parse(cluster).expect("a name"),
            agent: "fake".to_owned(),
            link: 0,
            version: "0".to_owned(),
        };
        let credential = Credential("test".into());
        let place = shared.registry.reserve(&registration, &credential).expect("room");
        let named = Named::new(&registration, SocketAddr::from(([127, 0, 0, 1], 1)), credential);
        Self { _linked: shared.registry.add(place, named, link), cancelled }
    }
}

/// A destination that behaves as its host says; any other host, such as a cluster's name, echoes.
async fn behave(mut incoming: Incoming, cancelled: mpsc::UnboundedSender<String>) {
    let host = incoming.destination.host().to_owned();
    match host.as_str() {
        "hole.member" => {
            incoming.cancelled().await;
            let _ = cancelled.send(host);
        }
        "closed.member" => {
            let message = "dial tcp closed.member:443: connect: connection refused";
            incoming.refuse(&Refusal::new(Hop::Agent, Reason::Unreachable, message));
        }
        "forbidden.member" => {
            incoming.refuse(&Refusal::new(Hop::Agent, Reason::Forbidden, "forbidden.member:443 is not allowed"));
        }
        "silent-close.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let _ = stream.shutdown().await;
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
        "timed.member" => echo(incoming.accept_timed(Timing::of_dial(DIALLED)).expect("the server is there")).await,
        "banner.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let _ = stream.write_all(BANNER).await;
            echo(stream).await;
        }
        "flood.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            while stream.write_all(&[0; 16 * 1024]).await.is_ok() {}
        }
        "reset.member" => {
            let mut stream = incoming.accept().expect("the server is there");
            let mut byte = [0];
            let _ = stream.read(&mut byte).await;
            stream.reset();
        }
        _ => echo(incoming.accept().expect("the server is there")).await,
    }
}

async fn echo(stream: tunnel::Stream) {
    let (mut from, mut to) = tokio::io::split(stream);
    if tokio::io::copy(&mut from, &mut to).await.is_ok() {
        let _ = to.shutdown().await;
    }
}
