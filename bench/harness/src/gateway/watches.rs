//! Watches that stay open, and events on them.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use kit::client::{H2Body, H2Connection};
use kit::member::{StreamSender, Streams};

use super::load::Asked;

/// Size of an event of a small object.
const EVENT: usize = 512;

pub struct Watches {
    /// Both ends of each.
    open: Vec<(StreamSender, H2Body)>,
    /// Without it they would end.
    _connection: H2Connection,
}

// === impl Watches ===

impl Watches {
    /// `number` of them on `connection`; the member's ends come from `opened`.
    pub async fn open(connection: H2Connection, mut opened: Streams, asked: &Asked, number: usize) -> Result<Self> {
        let (mut open, headers) = (Vec::new(), asked.headers());
        for _ in 0..number {
            let (answer, (_, sender)) = tokio::join!(connection.get(asked.path(), &headers), opened.next());
            let answer = answer?;
            ensure!(answer.status() == 200, "{} for {}", answer.status(), asked.path());
            open.push((sender, answer.body));
        }
        Ok(Self { open, _connection: connection })
    }

    /// `count` events, one on each watch at a time.
    pub async fn send(&mut self, count: u64) -> Result<()> {
        let event = Bytes::from(vec![b'1'; EVENT]);
        for _ in 0..count / self.open.len() as u64 {
            for (sender, _) in &self.open {
                ensure!(sender.send(event.clone()).await, "a watch has ended");
            }
            for (_, body) in &mut self.open {
                let mut left = EVENT;
                while left > 0 {
                    left -= body.chunk().await.context("a watch has ended")??.len();
                }
            }
        }
        Ok(())
    }
}
