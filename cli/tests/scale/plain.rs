//! A client that sends the program's requests and does nothing else: what these take of the
//! machine, with hub, gateway and members.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use kit::others::Moment;
use tokio::time::Instant;

use crate::{CLUSTERS, OwnHub, PODS};

/// As many as runs of the program are measured.
const ROUNDS: u32 = 2;
/// Connections, each for one request at a time: as many as the program has.
const AT_A_TIME: usize = 16;

/// What its requests to all clusters take.
pub struct Plain {
    /// Mean time of a round.
    pub took: Duration,
    /// CPU time of all rounds, everywhere.
    pub spent: Duration,
}

/// Measures it. No connection to a member is new: the program has made them.
pub fn measured(own: &OwnHub) -> Result<Plain> {
    let (before, begin) = (Moment::now()?, Instant::now());
    for _ in 0..ROUNDS {
        round(own)?;
    }
    Ok(Plain { took: begin.elapsed() / ROUNDS, spent: before.spent()? })
}

fn round(own: &OwnHub) -> Result<()> {
    let (server, asked) = (&own.hub.server, AtomicUsize::new(0));
    let ask = || -> Result<()> {
        let mut connection = server.client(Some(server.admin())).keep()?;
        loop {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            if number >= CLUSTERS {
                return Ok(());
            }
            let cluster = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c-{number:04}/proxy");
            let answer = connection.get(&format!("{cluster}{PODS}?limit=500&includeObject=None"))?;
            ensure!(answer.status.is_success() && answer.text().contains("web-1"), "{}", answer.text());
        }
    };
    thread::scope(|scope| {
        let asking: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().try_for_each(|one| one.join().expect("no panic"))
    })
}
