//! The same request again and again, made once.

use std::sync::Arc;

use anyhow::{Result, ensure};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::{Method, Request, Response, StatusCode};
use kit::pki::Issued;

use super::Caller;
use crate::route::Route;

/// Asks the same thing again and again.
#[derive(Clone)]
pub struct Repeater {
    caller: Caller,
    request: Arc<Request<()>>,
}

/// A connection, for many requests at a time.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Bytes>,
    request: Arc<Request<()>>,
}

// === impl Repeater ===

impl Repeater {
    /// GETs of `path` along `route`, with the way's headers or with `headers` in their place
    /// (`Name: value`), as the owner of `identity`.
    pub fn new(route: &Route, path: &str, headers: Option<&[String]>, identity: Option<&Issued>) -> Result<Self> {
        let caller = Caller::with(route, headers.unwrap_or(&route.headers), identity)?;
        let request = Arc::new(caller.head(Method::GET, path)?);
        Ok(Self { caller, request })
    }

    /// Connects as [`Caller::connect`] does.
    pub async fn connect(&self) -> Result<Connection> {
        Ok(Connection { sender: self.caller.connect().await?, request: Arc::clone(&self.request) })
    }
}

// === impl Connection ===

impl Connection {
    /// One request and its whole answer, which must be 200.
    pub async fn exchange(&self) -> Result<()> {
        let answer = self.begin().await?;
        let status = answer.status();
        let mut body = answer.into_body();
        let mut text = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            if status != StatusCode::OK {
                text.extend_from_slice(&data);
            }
        }
        ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&text));
        Ok(())
    }

    /// One request and the head of its answer.
    pub async fn begin(&self) -> Result<Response<RecvStream>> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, _) = sender.send_request(Request::clone(&self.request), true)?;
        Ok(answer.await?)
    }
}
