//! A member that sends frames.

use std::future::Future;
use std::io;
use std::sync::Arc;

use kit::pki::{ALPN_H2, Authority, ClientAuth, Leaf, server_config};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Frames;
use crate::testbed::Reachable;

/// The member's side of one connection.
pub type MemberFrames = Frames<TlsStream<TcpStream>>;

/// A running member. It stops when dropped.
#[derive(Debug)]
pub struct FrameMember {
    url: String,
    authority: Authority,
    _connections: JoinSet<()>,
}

// === impl FrameMember ===

impl FrameMember {
    /// Starts a member that runs `script` on each connection, numbered from 0. An error of it is
    /// the caller leaving.
    pub async fn start<F>(script: impl Fn(usize, MemberFrames) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::limited(u32::MAX, script).await
    }

    /// As [`FrameMember::start`], allowing `streams` at a time on a connection.
    pub async fn limited<F>(streams: u32, script: impl Fn(usize, MemberFrames) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let authority = Authority::new("member-ca");
        let identity = authority.issue(&Leaf::server("kube-apiserver"));
        let tls = TlsAcceptor::from(server_config(&identity, ClientAuth::None, ALPN_H2));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let url = format!("https://{}", listener.local_addr().expect("bound"));
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let (script, mut open) = (Arc::new(script), JoinSet::new());
            for number in 0.. {
                let Ok((tcp, _)) = listener.accept().await else { return };
                let (tls, script) = (tls.clone(), script.clone());
                open.spawn(async move {
                    let Ok(io) = tls.accept(tcp).await else { return };
                    let Ok(frames) = Frames::server(io, streams).await else { return };
                    script(number, frames).await.ok();
                });
            }
        });
        Self { url, authority, _connections: connections }
    }
}

impl Reachable for FrameMember {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }
}
