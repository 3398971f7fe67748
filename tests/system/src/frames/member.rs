//! A member that sends frames.

use std::future::Future;
use std::io;
use std::sync::Arc;

use kit::member::raw::{Act, RawMember};
use kit::pki::ALPN_H2;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::Frames;
use crate::testbed::Reachable;

/// The member's side of one connection.
pub type MemberFrames = Frames<TlsStream<TcpStream>>;

/// A running member. It stops when dropped.
#[derive(Debug)]
pub struct FrameMember(RawMember);

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
        let script = Arc::new(script);
        let acts = move |number| {
            let script = Arc::clone(&script);
            let serve = Act::serve(move |io| {
                let script = Arc::clone(&script);
                async move {
                    let frames = Frames::server(io, streams).await?;
                    script(number, frames).await
                }
            });
            vec![Act::Tls(ALPN_H2), serve]
        };
        Self(RawMember::start(acts).await)
    }
}

impl Reachable for FrameMember {
    fn url(&self) -> String {
        self.0.url()
    }

    fn ca_pem(&self) -> String {
        self.0.ca_pem()
    }
}
