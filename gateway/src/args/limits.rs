//! Flags that limit requests in flight.

use clap::Args as Group;
use net::memory;
use telemetry::flags::bytes;

use crate::limits::{Budgets, Caps};

#[derive(Debug, Group)]
pub struct Limits {
    /// Requests in flight for one cluster, excluding watches, followed logs and upgrades; 0 means
    /// no limit
    #[arg(long = "max-requests-per-cluster", default_value_t = 4000, value_name = "NUMBER")]
    pub requests_per_cluster: u32,
    /// Watches, followed logs and upgrades in flight for one cluster; 0 means no limit
    #[arg(long = "max-long-requests-per-cluster", default_value_t = 20_000, value_name = "NUMBER")]
    pub long_requests_per_cluster: u32,
    /// Requests in flight of one user, or of all ServiceAccounts of one namespace, excluding
    /// watches, followed logs and upgrades; 0 means no limit
    #[arg(long = "max-requests-per-user", default_value_t = 2000, value_name = "NUMBER")]
    pub requests_per_user: u32,
    /// Watches, followed logs and upgrades in flight of one user, or of all ServiceAccounts of one
    /// namespace; 0 means no limit
    #[arg(long = "max-long-requests-per-user", default_value_t = 20_000, value_name = "NUMBER")]
    pub long_requests_per_user: u32,
    /// Bytes held for all clients together: heads, unread bodies, unsent responses, unfinished
    /// heads of members, and what streams of the tunnel hold unread or unsent. Beyond it, the
    /// gateway ends requests and connections of the owner that holds the most (default: a quarter
    /// of the memory that the process may use, 1Gi if that has no limit)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub max_held_bytes: Option<u64>,
}

/// The part of the process's memory limit: one in this many. Under attack the process uses up to
/// 2.8 times the held bytes: buffers that are not full, TLS, memory that the allocator has not
/// returned yet, and the program itself.
const SHARE: u64 = 4;
/// The default if memory has no limit.
const HELD_BYTES: u64 = 1 << 30;

// === impl Limits ===

impl Limits {
    pub fn held_bytes(&self) -> u64 {
        self.max_held_bytes.unwrap_or_else(|| memory::limit().map_or(HELD_BYTES, |limit| limit / SHARE))
    }

    pub fn caps(&self) -> Caps {
        Caps {
            cluster: Budgets { short: self.requests_per_cluster, long: self.long_requests_per_cluster },
            user: Budgets { short: self.requests_per_user, long: self.long_requests_per_user },
        }
    }
}
