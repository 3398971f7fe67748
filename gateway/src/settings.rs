//! Settings that requests look at.

#[derive(Debug, Clone)]
pub struct Settings {
    pub upgrade_verb: UpgradeVerb,
    pub expose_credentials: bool,
    /// Whether proxied requests are reviewed a second time, as what they are for the member.
    pub authorize_subpath: bool,
    /// HTTP/2 streams per client connection.
    pub max_streams: u32,
}

/// The verb an upgrade is reviewed as, unless it is a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradeVerb {
    /// As `create`, like the SPDY form of the same request, which is a POST
    /// (kube-apiserver 1.35 does the same for pods, KEP-4006).
    #[default]
    Create,
    /// As the `get` that the WebSocket request is on its face.
    Get,
}
