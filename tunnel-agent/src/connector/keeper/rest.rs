//! How often to look whether other servers are behind an address.
//!
//! Behind a load balancer the only way to know is one more link. If it leads to a server that has
//! enough, the next look is twice as far away: looking once a second for ever, as others do, is a
//! registration per agent and second.

use std::time::Duration;

use net::backoff::Backoff;
use tokio::time::Instant;

/// Half of it by chance, so that agents do not look in step.
const LOOKS: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_mins(10));

/// The default does not rest.
#[derive(Debug, Default)]
pub(super) struct Rest {
    in_vain: u32,
    until: Option<Instant>,
    /// How many servers were linked when last heard of.
    servers: usize,
}

// === impl Rest ===

impl Rest {
    /// A link led where enough are.
    pub(super) fn found_nothing_new(&mut self) {
        self.until = Some(Instant::now() + LOOKS.wait(self.in_vain));
        self.in_vain = self.in_vain.saturating_add(1);
    }

    /// A link led where it is wanted, or one of this address is gone: the next look may be at once.
    pub(super) fn end(&mut self) {
        *self = Self { servers: self.servers, ..Self::default() };
    }

    /// Links somewhere came or went, and there are so many servers now. With fewer than before,
    /// this address may lead to one that lacks links now.
    pub(super) fn on_change(&mut self, servers: usize) {
        if servers < self.servers {
            self.end();
        }
        self.servers = servers;
    }

    /// When to look again; none if nothing speaks against it.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_in_vain_become_rare() {
        let mut rest = Rest::default();
        let started = Instant::now();
        let mut looks = 0;
        while started.elapsed() < Duration::from_hours(1) {
            rest.found_nothing_new();
            tokio::time::sleep_until(rest.until().unwrap()).await;
            looks += 1;
        }
        assert!((10..25).contains(&looks), "{looks} in the first hour");
        rest.on_change(2);
        assert!(rest.until().is_some());
        rest.on_change(1);
        assert!(rest.until().is_none(), "a server was lost");
    }
}
