//! Thousands of objects on a hub: as many requests at a time as it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::caller::Caller;

/// Connections to the hub.
const CONNECTIONS: usize = 4;
/// Requests at a time, on all connections.
pub const MANY: usize = 64;

/// Makes the path of a collection and the object with this number that is created in it.
pub type Make = Arc<dyn Fn(usize) -> Result<(String, Value)> + Send + Sync>;
/// Makes the request with this number.
pub type MakeRequest = Arc<dyn Fn(&Caller, usize) -> Result<Request<Bytes>> + Send + Sync>;

/// Creates `count` objects.
pub async fn create(hub: &Caller, count: usize, make: Make) -> Result<()> {
    create_at_once(hub, count, MANY, make).await
}

/// Creates `count` objects, `at_once` at a time.
pub async fn create_at_once(hub: &Caller, count: usize, at_once: usize, make: Make) -> Result<()> {
    let post = move |hub: &Caller, number: usize| {
        let (path, object) = make(number)?;
        hub.json(Method::POST, &path, &object)
    };
    send(hub, count, at_once, Arc::new(post)).await
}

/// Sends `count` requests, `at_once` at a time; each must be answered with success.
pub async fn send(hub: &Caller, count: usize, at_once: usize, make: MakeRequest) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = hub.connect().await?;
        for _ in 0..(at_once / CONNECTIONS).max(1) {
            let (connection, hub) = (connection.clone(), hub.clone());
            let (next, make) = (Arc::clone(&next), Arc::clone(&make));
            workers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(());
                    }
                    hub.ask(&connection, make(&hub, number)?).await?;
                }
            });
        }
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}
