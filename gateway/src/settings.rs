//! Settings that requests look at.

use api::access::Verb;

#[derive(Debug, Clone)]
pub struct Settings {
    /// What an upgrade by GET is reviewed as, but for watches of a collection: `create` unless an
    /// operator says otherwise, like the SPDY form of the same request, which is a POST
    /// (kube-apiserver 1.35 does the same for pods, KEP-4006). Other methods keep their own verb.
    pub upgrade_verb: Verb,
    /// Whether proxied requests are reviewed a second time, as what they are for the member.
    pub authorize_subpath: bool,
    /// HTTP/2 streams per client connection.
    pub max_streams: u32,
}
