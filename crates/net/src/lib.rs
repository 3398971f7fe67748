//! Sockets, TLS that reloads while running, drain and byte pumps. Of HTTP it only has ALPN
//! names, the `CONNECT` of proxies and a wrapper of bodies, and nothing of Kubernetes.

pub mod accept;
pub mod backoff;
pub mod budget;
pub mod cancellation;
pub mod costly;
pub mod dial;
pub mod drain;
pub mod flight;
pub mod follow;
mod forward;
pub mod frames;
pub mod gather;
pub mod head;
pub mod http2;
pub mod large_reads;
pub mod linger;
pub mod listen;
pub mod memory;
pub mod observed;
pub mod opened;
pub mod pending;
pub mod permit;
pub mod prefixed;
pub mod process;
pub mod proxy;
pub mod pump;
pub mod queue;
pub mod random;
pub mod rate;
pub mod runtime;
pub mod seal;
pub mod shares;
pub mod throttle;
pub mod tls;
pub mod transport;
pub mod words;
