//! What a kubeconfig says, and what is wrong with it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError};
use net::follow;
use net::tls::keypair;

use super::HubClientError;

/// Checks that a kubeconfig of unknown origin is safe to use: it runs no program here, reads no
/// file of this machine, and leads to a hub with a verified certificate.
///
/// # Errors
///
/// Fails if the file cannot be read, or if any of its users or clusters breaks one of these rules.
pub fn handed_over(path: &Path) -> Result<(), HubClientError> {
    let refused = |what: String| HubClientError::Kubeconfig { path: path.to_owned(), what };
    let read = Kubeconfig::read_from(path).map_err(|error| refused(mistake(&error)))?;
    for user in read.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        let found = [
            ("exec", user.exec.is_some()),
            ("auth-provider", user.auth_provider.is_some()),
            ("tokenFile", user.token_file.is_some()),
            ("client-certificate", user.client_certificate.is_some()),
            ("client-key", user.client_key.is_some()),
        ];
        if let Some((field, _)) = found.into_iter().find(|(_, is_there)| *is_there) {
            return Err(refused(format!(
                "{field} is not accepted in a bootstrap kubeconfig: put the data into the file"
            )));
        }
    }
    for cluster in read.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        if cluster.certificate_authority.is_some() {
            return Err(refused("certificate-authority names a file: use certificate-authority-data".into()));
        }
        if cluster.insecure_skip_tls_verify == Some(true) {
            return Err(refused(
                "insecure-skip-tls-verify is not accepted: give the hub's CA, or any server that answers gets the \
                 token"
                    .into(),
            ));
        }
        let url = cluster.server.as_deref().unwrap_or_default();
        if !url.starts_with("https://") {
            return Err(refused("its server is not an https URL".into()));
        }
    }
    Ok(())
}

/// A certificate in PEM (RFC 7468).
pub(super) fn pem(certificate: &[u8]) -> Vec<u8> {
    const LINE: usize = 64;
    let mut pem = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    for line in STANDARD.encode(certificate).as_bytes().chunks(LINE) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(b"-----END CERTIFICATE-----\n");
    pem
}

/// The certificates of a PEM file, without anything else in the file.
pub fn ca_file(path: &Path) -> Result<Vec<u8>, HubClientError> {
    ca(path).map(|certificates| certificates.iter().flat_map(|certificate| pem(certificate)).collect())
}

/// The certificates of a PEM file, as DER.
pub(super) fn ca(path: &Path) -> Result<Vec<Vec<u8>>, HubClientError> {
    let wrong = |what: String| HubClientError::Ca { path: path.to_owned(), what };
    let pem = follow::read(path, follow::LONGEST).map_err(|error| wrong(error.to_string()))?;
    let certificates = keypair::certificates(&pem).map_err(|error| wrong(error.to_string()))?;
    Ok(certificates.iter().map(|certificate| certificate.to_vec()).collect())
}

/// The name and the content of the current context's cluster. `None` if there is no such file, or
/// no such cluster in it.
pub(crate) fn current_cluster(path: &Path) -> Option<(String, Cluster)> {
    let (read, context) = current(path)?;
    let cluster = read.clusters.into_iter().find(|known| known.name == context.cluster)?.cluster?;
    Some((context.cluster, cluster))
}

/// The current context's user, likewise.
pub(crate) fn current_user(path: &Path) -> Option<AuthInfo> {
    let (read, context) = current(path)?;
    let user = context.user?;
    read.auth_infos.into_iter().find(|info| info.name == user)?.auth_info
}

fn current(path: &Path) -> Option<(Kubeconfig, Context)> {
    let read = Kubeconfig::read_from(path).ok()?;
    let current = read.current_context.as_deref()?;
    let context = read.contexts.iter().find(|context| context.name == current)?.context.clone()?;
    Some((read, context))
}

/// What is wrong with a kubeconfig. Parsers quote the lines around a mistake, and these lines hold
/// credentials, so the text only names the position.
pub fn mistake(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(location) => {
                format!("the kubeconfig is not valid near line {}, column {}", location.line(), location.column())
            }
            None => "the kubeconfig is not valid".to_owned(),
        },
        other => other.to_string(),
    }
}
