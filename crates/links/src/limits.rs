//! How much of each thing a tunnel-server takes. A client that hits a limit gets a 429; others are
//! not affected.

/// The numbers; [`Limits::default`] is right for a server of a few thousand clusters.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections to the agents' listener that have not said what they want to register, TLS
    /// handshakes included. Any client can open these: `pending` says which gives way when there is
    /// one more. Each may cost 64 KiB.
    pub unregistered: usize,
    /// The same from one address. Many agents may have one: that of a network's way out, or of a
    /// load balancer that hides theirs.
    pub unregistered_per_address: usize,
    /// Registrations being judged. More wait as unregistered ones do.
    pub registering: usize,
    /// The same from one address, and with one credential: a hub that is slow holds each of them
    /// up.
    pub registering_per_address: usize,
    /// Links of one cluster: two of each of a few agents are usual.
    pub links_per_cluster: usize,
    /// Links of one agent's process.
    pub links_per_agent: usize,
    /// Links of all clusters.
    pub links: usize,
    /// Streams open, or being opened, over one frontend's connection.
    pub streams_per_frontend: usize,
    /// Streams of one cluster.
    pub streams_per_cluster: usize,
    /// Streams of all clusters.
    pub streams: usize,
    /// Streams of one cluster being opened: destinations that do not answer must not take all room
    /// of those that do.
    pub dials_per_cluster: usize,
    /// Connections of frontends, over TLS and the Unix socket together; each stream by HTTP/1.1 is
    /// one.
    pub frontends: usize,
    /// Connections to the frontends' listener whose TLS handshake has not ended; `pending` says
    /// which gives way.
    pub handshakes: usize,
    /// The same from one address: a kube-apiserver makes one for each stream.
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
