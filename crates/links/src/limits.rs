//! Limits of a tunnel-server. A client that hits one gets a 429, and other clients are not
//! affected.

/// The limits. [`Limits::default`] suits a server of a few thousand clusters.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections to the agents' listener that have not sent a registration, TLS handshakes
    /// included. Any client can open these: at the limit, `pending` closes an old one for each new
    /// one. Each may cost 64 KiB.
    pub unregistered: usize,
    /// Unregistered connections from one address. Many agents may share one: that of a NAT gateway,
    /// or of a load balancer that hides theirs.
    pub unregistered_per_address: usize,
    /// Registrations being judged at a time. More of them wait, and count as unregistered.
    pub registering: usize,
    /// The same from one address, and with one credential: a hub that is slow holds each of them
    /// up.
    pub registering_per_address: usize,
    /// Links of one cluster: usually two for each of a few agents.
    pub links_per_cluster: usize,
    /// Links of one agent process.
    pub links_per_agent: usize,
    /// Links of all clusters.
    pub links: usize,
    /// Streams open or being opened on one frontend's connection.
    pub streams_per_frontend: usize,
    /// Streams of one cluster.
    pub streams_per_cluster: usize,
    /// Streams of all clusters.
    pub streams: usize,
    /// Streams of one cluster being opened, so that destinations that do not answer leave room for
    /// others.
    pub dials_per_cluster: usize,
    /// Connections of frontends over TLS and the Unix socket together. Over HTTP/1.1 each stream is
    /// one.
    pub frontends: usize,
    /// Connections to the frontends' listener during their TLS handshake. At the limit, `pending`
    /// closes an old one for each new one.
    pub handshakes: usize,
    /// Handshakes from one address: a kube-apiserver makes one for each stream.
    pub handshakes_per_address: usize,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            unregistered: 512,
            unregistered_per_address: 128,
            registering: 256,
            registering_per_address: 64,
            links_per_cluster: 64,
            links_per_agent: 16,
            links: 20_000,
            streams_per_frontend: 10_000,
            streams_per_cluster: 20_000,
            streams: 50_000,
            dials_per_cluster: 512,
            frontends: 60_000,
            handshakes: 1_024,
            handshakes_per_address: 512,
        }
    }
}
