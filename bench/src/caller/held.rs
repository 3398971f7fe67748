//! Streams that are open and idle while something else is measured.

use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::repeater::Repeater;

/// Open until dropped. A thread of their own answers the peer's PINGs meanwhile.
pub struct HeldRequests {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl HeldRequests ===

impl HeldRequests {
    /// Opens `number` requests of `caller`, on as many connections as are needed for `each` on one.
    /// Returns when all are answered.
    pub fn open(caller: Repeater, number: usize, each: usize) -> Result<Self> {
        let (opened, wait) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let streams = begin(&caller, number, each).await;
                let (streams, outcome) = match streams {
                    Ok(streams) => (streams, Ok(())),
                    Err(error) => (Vec::new(), Err(error)),
                };
                if opened.send(outcome).is_ok() {
                    drop(stopped.await);
                }
                drop(streams);
            });
        });
        let held = Self { stop: Some(stop), thread: Some(thread) };
        wait.blocking_recv().unwrap_or_else(|_| Err(anyhow!("no runtime")))?;
        Ok(held)
    }
}

impl Drop for HeldRequests {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

type Streams = Vec<http::Response<h2::RecvStream>>;

async fn begin(caller: &Repeater, number: usize, each: usize) -> Result<Streams> {
    let mut streams = Vec::with_capacity(number);
    let mut connection = None;
    for index in 0..number {
        if index % each == 0 {
            connection = Some(caller.connect().await?);
        }
        let answer = connection.as_ref().context("no connection")?.begin();
        let answer = tokio::time::timeout(super::LIMIT, answer).await.context("no answer in time")??;
        ensure!(answer.status().is_success(), "a stream was answered with {}", answer.status());
        streams.push(answer);
    }
    Ok(streams)
}
