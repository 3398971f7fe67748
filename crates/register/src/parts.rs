//! Parts of a cluster that sources write in different fields, each parsed in one way.

use api::secret::{CREDENTIAL_TYPE_LABEL, Credential, Endpoint, InvalidEndpoint, ProxyUrl, Trust};
use net::tls::keypair::certificates;
use secrecy::SecretString;

use crate::reading::{Reading, SecretObject, SecretReference, Waiting};
use crate::{Refused, Rules};

const TOKEN: &str = "token";
/// Limit of a token in bytes: those of clouds have four kibibytes.
const MOST_TOKEN: usize = 64 << 10;

/// Parses a URL of an API server.
pub(crate) fn endpoint(field: &'static str, url: &str, rules: &Rules) -> Result<Endpoint, Refused> {
    let endpoint = Endpoint::parse(url, false).map_err(|why| Refused::Url(field, why))?;
    rules.endpoints.check(field, &endpoint)?;
    Ok(endpoint)
}

/// Parses a URL, or a host with or without a port, as Go's clients do (client-go's
/// `rest.DefaultServerURL`): only a URL has a path. Without a scheme it is https.
pub(crate) fn address(field: &'static str, text: &str, rules: &Rules) -> Result<Endpoint, Refused> {
    if text.contains("://") {
        return endpoint(field, text, rules);
    }
    let host = text.strip_suffix('/').unwrap_or(text);
    if host.contains('/') {
        return Err(Refused::Url(field, InvalidEndpoint::NoScheme));
    }
    endpoint(field, &format!("https://{host}"), rules)
}

pub(crate) fn proxy(field: &'static str, url: &str, rules: &Rules) -> Result<ProxyUrl, Refused> {
    let proxy = ProxyUrl::parse(url).map_err(|why| Refused::ProxyUrl(field, why))?;
    rules.endpoints.check_host(field, &proxy.host)?;
    Ok(proxy)
}

/// Parses certificates in PEM.
pub(crate) fn bundle(field: &'static str, pem: &[u8]) -> Result<Trust, Refused> {
    certificates(pem).map_err(|why| Refused::Authority(field, why))?;
    Ok(Trust::Bundle(pem.to_vec()))
}

/// The token in the Secret that `field` names, if any.
pub(crate) fn token(field: &'static str, secret: &SecretObject) -> Result<Option<Credential>, Refused> {
    if secret.is_of_hub() {
        return Err(Refused::OfHub(field));
    }
    if secret.labels.contains_key(CREDENTIAL_TYPE_LABEL) {
        return Err(Refused::OfCluster(field));
    }
    if !secret.is_opaque() {
        return Err(Refused::NotOpaque(field));
    }
    let Some(token) = secret.value(TOKEN) else { return Ok(None) };
    let token = std::str::from_utf8(token).map_err(|_| Refused::NotText)?.trim_ascii_end();
    bearer(token).map(Some)
}

/// Checks that a token fits into a request, and into the memory of a gateway with thousands of
/// clusters.
pub(crate) fn bearer(token: &str) -> Result<Credential, Refused> {
    if token.len() > MOST_TOKEN {
        return Err(Refused::LongToken(MOST_TOKEN));
    }
    Ok(Credential::Token(SecretString::from(token)))
}

/// Refuses variables that the operator did not list. `PATH` and those of the loader (ld.so(8)), of
/// shells (`BASH_ENV`) and of interpreters decide what runs, and no list of these would be
/// complete. Upstream allows any, because its users choose whose kubeconfigs they use.
pub(crate) fn variable(field: &'static str, name: &str, rules: &Rules) -> Result<(), Refused> {
    if rules.exec_env.iter().any(|listed| listed == name) { Ok(()) } else { Err(Refused::Variable(field)) }
}

/// The Secret that `field` names. If it is missing, an object that is being deleted does not wait
/// for it.
pub(crate) fn find<'a>(
    field: &'static str,
    reference: &SecretReference,
    secrets: &[&'a SecretObject],
    is_deleting: bool,
) -> Result<&'a SecretObject, Reading> {
    let missing = if is_deleting { Waiting::Leaving } else { Waiting::NoSecret(field) };
    let is_it = |secret: &&&SecretObject| secret.reference() == *reference;
    Ok(secrets.iter().find(is_it).copied().ok_or(missing)?)
}
