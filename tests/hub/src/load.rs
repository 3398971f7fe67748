//! Requests beside a command under test, none of which may fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::control_plane::ApiServer;

/// Pause between two requests: several fall into each step of the command, and the machine has
/// something else to do.
const PAUSE: Duration = Duration::from_millis(50);
/// With no more requests than this, nothing was tried.
const LEAST: usize = 3;

/// Runs `command` while a member of `system:masters` goes on to GET `path`. Fails if one of the
/// requests does.
pub fn beside<T>(server: &ApiServer, path: &str, command: impl FnOnce() -> Result<T>) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| -> Result<usize> {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                server.raw(path).with_context(|| format!("request {count} beside the command"))?;
                count += 1;
                thread::park_timeout(PAUSE);
            }
            Ok(count)
        });
        let outcome = command();
        stop.store(true, Ordering::Relaxed);
        let count = load.join().expect("no panic")?;
        ensure!(count > LEAST, "{count} requests are no load");
        outcome
    })
}
