//! Authenticates by the hub's front proxy: accepts identity headers only from a connection with the
//! proxy's certificate.
//!
//! `k8s.io/apiserver/pkg/authentication/request/headerrequest` behind
//! `…/request/x509.NewDynamicCAVerifier`: a certificate that is not the proxy's is an error, and
//! without a certificate the headers are ignored. A request of the proxy without a user name is an
//! error too. Upstream has no opinion there and relies on the client certificate method to refuse
//! it. That method cannot if no client CAs are known, and then the hub itself would count as
//! anonymous.

use std::sync::Arc;

use http::HeaderMap;

use crate::certificate::Subject;
use crate::clock::Window;
use crate::peer::{Peer, Verdict};
use crate::review::Opinion;
use crate::trust::{FrontProxySettings, Snapshot};

/// Judges the peer's certificate and, if it is the front proxy's, reads the user from `headers`.
pub(crate) fn authenticate(
    peer: &Peer,
    headers: &HeaderMap,
    settings: &Snapshot<FrontProxySettings>,
    now: u64,
) -> Opinion {
    if !peer.may_be_front_proxy() {
        return Opinion::None;
    }
    match recognize(peer, settings, now) {
        Ok(()) => match peer.memory().identities.user(headers, &settings.value.headers, settings.generation) {
            Opinion::None => Opinion::Refused(Arc::from("front proxy: the request names no user")),
            opinion => opinion,
        },
        Err(why) => Opinion::Refused(why),
    }
}

/// Judges the peer's certificate, and remembers the verdict in the peer.
pub(crate) fn recognize(peer: &Peer, settings: &Snapshot<FrontProxySettings>, now: u64) -> Result<(), Arc<str>> {
    if !peer.may_be_front_proxy() {
        return Err(Arc::from("front proxy: no certificate"));
    }
    let known = &mut peer.memory().front_proxy;
    let verdict = Verdict::recall(known, settings.generation, now, || judge(peer, &settings.value, now));
    peer.set_front_proxy(verdict.is_ok());
    verdict
}

fn judge(peer: &Peer, settings: &FrontProxySettings, now: u64) -> Result<((), Window), Arc<str>> {
    let chain = peer.certificates();
    let refuse = |why: &dyn std::fmt::Display| Arc::from(format!("front proxy: {why}"));
    let window = settings.authorities.verify(chain, now).map_err(|error| refuse(&error))?;
    let name = Subject::parse(&chain[0]).map_err(|error| refuse(&error))?.common_name;
    if !settings.allows(&name) {
        return Err(refuse(&format_args!("the common name {name:?} is not in the allowed list")));
    }
    Ok(((), window))
}

#[cfg(test)]
mod tests;
