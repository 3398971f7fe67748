//! Thousands of objects on a hub: as many requests at a time as it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::caller::Caller;

/// To the hub.
const CONNECTIONS: usize = 4;
/// At a time on each connection.
const REQUESTS: usize = 16;

/// Makes the path of a collection and the object with this number that is created in it.
pub type Make = Arc<dyn Fn(usize) -> Result<(String, Value)> + Send + Sync>;

/// Creates `count` objects.
pub async fn create(hub: &Caller, count: usize, make: Make) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = hub.connect().await?;
        for _ in 0..REQUESTS {
            let (connection, hub) = (connection.clone(), hub.clone());
            let (next, make) = (Arc::clone(&next), Arc::clone(&make));
            workers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(());
                    }
                    let (path, object) = make(number)?;
                    let body = serde_json::to_vec(&object)?;
                    let mut request = hub.request(Method::POST, &path, body.into())?;
                    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    hub.ask(&connection, request).await?;
                }
            });
        }
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}
