//! The tunnel as its users see it: real sockets and TLS on loopback, servers, agents and gateways
//! in this process.
//!
//! One binary, so that it links once. Each module is one promise; each test has its own testbed.

#![expect(clippy::print_stdout, reason = "what was measured is shown beside the test that measured it")]
#![expect(clippy::float_cmp, reason = "the series compared here count whole things")]

mod bytes;
mod cancelling;
mod crowds;
mod first_words;
mod hostile;
mod idle;
mod refusals;
mod replicas;
mod resets;
mod rotation;
mod soak;
mod stalls;

/// The allocator of the programs: memory measured by tests is what users get.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
