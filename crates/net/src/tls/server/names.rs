//! Several serving certificates, chosen by the name that the client asks for.
//!
//! The rules are those of Kubernetes' servers (`--tls-sni-cert-key`): names given with a pair come
//! before names from its certificate, earlier pairs before later ones, and whole names before
//! wildcards. A wildcard stands for one label. A client that asks for no name, or for an unknown
//! one, gets the main certificate.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{KeyPairFiles, ServingCertificate};
use crate::tls::end::{End, InUse};
use crate::tls::keypair::KeyPairError;

/// Another certificate and its names; without any, the names in the certificate.
#[derive(Debug, Clone)]
pub struct NamedFiles {
    pub files: KeyPairFiles,
    /// DNS names, also `*.example.com`, in lower case.
    pub names: Vec<String>,
}

/// The main certificate and the others, replaced as their files change.
pub struct ServingCertificates {
    main: Arc<ServingCertificate>,
    named: Vec<Named>,
    by_name: ArcSwap<HashMap<String, Arc<CertifiedKey>>>,
}

struct Named {
    certificate: Arc<ServingCertificate>,
    names: Vec<String>,
}

// === impl ServingCertificates ===

impl ServingCertificates {
    /// Reads all files once. Fails at the first without a matching pair, with the file's name.
    pub fn load(main: Arc<ServingCertificate>, named: Vec<NamedFiles>) -> Result<Arc<Self>, KeyPairError> {
        let load =
            |named: NamedFiles| Ok(Named { certificate: ServingCertificate::load(named.files)?, names: named.names });
        let named = named.into_iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let by_name = ArcSwap::from_pointee(by_name(&named));
        Ok(Arc::new(Self { main, named, by_name }))
    }

    /// Follows the files forever, as [`ServingCertificate::follow`] does for one pair.
    pub async fn follow(self: Arc<Self>) {
        let named = self.named.iter().map(|named| {
            let all = Arc::clone(&self);
            // `rcu`, so that two concurrent changes do not undo each other.
            let changed = move || drop(all.by_name.rcu(|_| by_name(&all.named)));
            Arc::clone(&named.certificate).follow(changed, || {})
        });
        tokio::join!(Arc::clone(&self.main).follow(|| {}, || {}), join_all(named));
    }

    fn named(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let by_name = self.by_name.load();
        let name = name.to_ascii_lowercase();
        if let Some(key) = by_name.get(&name) {
            return Some(Arc::clone(key));
        }
        let (_, parent) = name.split_once('.')?;
        by_name.get(&format!("*.{parent}")).map(Arc::clone)
    }
}

impl InUse for ServingCertificates {
    fn ends(&self) -> Vec<End> {
        let named = self.named.iter().map(|named| &named.certificate);
        std::iter::once(&self.main).chain(named).flat_map(|certificate| certificate.ends()).collect()
    }
}

impl ResolvesServerCert for ServingCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = if self.named.is_empty() { None } else { hello.server_name().and_then(|name| self.named(name)) };
        Some(named.unwrap_or_else(|| self.main.current()))
    }
}

impl fmt::Debug for ServingCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCertificates").field("main", &self.main).finish_non_exhaustive()
    }
}

fn by_name(certificates: &[Named]) -> HashMap<String, Arc<CertifiedKey>> {
    let mut by_name = HashMap::new();
    let given = certificates.iter().map(|named| (named.names.clone(), named.certificate.current()));
    let read = certificates.iter().filter(|named| named.names.is_empty()).map(|named| {
        let key = named.certificate.current();
        (names_in(&key), key)
    });
    for (names, key) in given.chain(read) {
        for name in names {
            by_name.entry(name).or_insert_with(|| Arc::clone(&key));
        }
    }
    by_name
}

fn names_in(key: &CertifiedKey) -> Vec<String> {
    let Ok(leaf) = key.end_entity_cert() else { return Vec::new() };
    let Ok(leaf) = webpki::EndEntityCert::try_from(leaf) else { return Vec::new() };
    leaf.valid_dns_names().map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests;
