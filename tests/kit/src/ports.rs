//! TCP ports for programs that cannot choose one themselves, for servers that come back where they
//! were, and for places without a listener.
//!
//! They are below the range from which the system takes ports for outgoing connections and for port
//! 0 (32768 on Linux), so that no other process takes one while it is not listened on: in a test
//! run thousands of connections come and go each second. Starting at a place that depends on the
//! process makes two runs side by side unlikely to meet.

use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
/// Ports that one process may take before it could meet its neighbour.
const SHARE: u32 = 48;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Numbers of ports, each given once in this process and each no more than once by one iterator.
/// Another process may listen there.
pub fn numbers() -> impl Iterator<Item = u16> {
    let start = std::process::id().wrapping_mul(SHARE) % u32::from(COUNT);
    (0..COUNT).map(move |_| {
        let offset = (start + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        FIRST + u16::try_from(offset).expect("less than there are ports")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_are_nobodys_by_chance() {
        let (first, second): (Vec<_>, Vec<_>) = (numbers().take(10).collect(), numbers().take(10).collect());
        let mut all = [first, second].concat();
        assert!(all.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20);
    }
}
