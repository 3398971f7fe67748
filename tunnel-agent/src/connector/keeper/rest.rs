//! How often to look for other servers behind an address.
//!
//! Behind a load balancer, the only way to find out is one more link. If it leads to a server that
//! has enough links, the next look follows within a second, a few times, because a balancer of two
//! servers leads every second link to the same one, and with one server alone the cluster is lost
//! with it. Then the wait before the next look doubles: a look per second forever, as others do it,
//! would be a registration per agent and second.

use std::time::Duration;

use net::backoff::Backoff;
use tokio::time::Instant;

/// Half of it is random, so that agents do not look in step.
const LOOKS: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_mins(10));

/// Before the next of the first looks: random, because all agents of a server that has ended look.
const NEXT: Backoff = Backoff::steady(Duration::from_secs(1), 1.0);

/// So many looks, before the first rest.
const AT_ONCE: u32 = 3;

/// The default does not rest.
#[derive(Debug, Default)]
pub(super) struct Rest {
    in_vain: u32,
    until: Option<Instant>,
    /// Number of linked servers at the last change.
    servers: usize,
}

// === impl Rest ===

impl Rest {
    /// A link led to a server that has enough.
    pub(super) fn found_nothing_new(&mut self) {
        self.in_vain = self.in_vain.saturating_add(1);
        let wait = self.in_vain.checked_sub(AT_ONCE).map_or_else(|| NEXT.wait(0), |rests| LOOKS.wait(rests));
        self.until = Some(Instant::now() + wait);
    }

    /// A link led to a server that wanted it, or one of this address is gone: the next look may be
    /// at once.
    pub(super) fn end(&mut self) {
        *self = Self { servers: self.servers, ..Self::default() };
    }

    /// Links of any keeper changed, and there are `servers` linked servers now. If they are fewer
    /// than before, this address may lead to one that lacks links now.
    pub(super) fn on_change(&mut self, servers: usize) {
        if servers < self.servers {
            self.end();
        }
        self.servers = servers;
    }

    /// Time of the next look; none if it may be at once.
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
        for look in 1..=AT_ONCE {
            rest.found_nothing_new();
            let wait = rest.until().unwrap() - Instant::now();
            assert_eq!(wait <= Duration::from_secs(1), look < AT_ONCE, "{look}: {wait:?}");
        }
        let mut looks = AT_ONCE;
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
