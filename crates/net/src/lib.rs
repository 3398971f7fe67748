//! Sockets, TLS that reloads while running, drain and byte pumps. Knows HTTP only by its ALPN names, Kubernetes not at all.

pub mod dial;
pub mod drain;
pub mod linger;
pub mod listen;
pub mod pump;
pub mod tls;
pub mod transport;
