//! Clusters from the contexts of a kubeconfig: converts each context to the Secret that it would
//! have on a hub.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use api::secret::{
    CA_KEY, CREDENTIAL_TYPE_LABEL, ENDPOINT_KEY, INSECURE_KEY, PROXY_URL_KEY, SecretView, TLS_CERT_KEY,
    TLS_PRIVATE_KEY_KEY, TLS_SERVER_NAME_KEY, TOKEN_KEY,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use net::words;
use secrecy::ExposeSecret;

use super::Registry;

pub type Data = BTreeMap<String, Vec<u8>>;

/// Registers the file's contexts and returns their names. An unusable context is registered with
/// the reason.
///
/// # Errors
/// The file cannot be read or parsed. Then nothing is changed.
pub fn apply(registry: &mut Registry, path: &Path, generation: u64) -> Result<Vec<String>, String> {
    // This call resolves relative file names against the file's directory.
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| ::hub::client::mistake(&error))?;
    let mut names = Vec::new();
    for context in &kubeconfig.contexts {
        match secret(&kubeconfig, &context.name) {
            Ok((kind, data)) => {
                let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), kind.to_owned())]);
                registry.apply(&SecretView {
                    name: &context.name,
                    uid: &context.name,
                    resource_version: &generation.to_string(),
                    creation_timestamp: None,
                    labels: &labels,
                    annotations: &BTreeMap::new(),
                    data: &data,
                });
            }
            Err(reason) => registry.reject(&context.name, &reason),
        }
        names.push(context.name.clone());
    }
    Ok(names)
}

/// The Secret's credential type and data for one context.
pub fn secret(kubeconfig: &Kubeconfig, context: &str) -> Result<(&'static str, Data), String> {
    let context =
        kubeconfig.contexts.iter().find(|named| named.name == context).and_then(|named| named.context.as_ref());
    let context = context.ok_or("the context is empty")?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster);
    let cluster = cluster.and_then(|named| named.cluster.as_ref()).ok_or("its cluster is not in the file")?;
    let user = context.user.as_deref().and_then(|user| kubeconfig.auth_infos.iter().find(|named| named.name == user));
    let user = user.and_then(|named| named.auth_info.as_ref()).ok_or("its user is not in the file")?;
    let mut data = Data::new();
    put_cluster(&mut data, cluster)?;
    let kind = put_credential(&mut data, user)?;
    Ok((kind, data))
}

fn put_cluster(data: &mut Data, cluster: &Cluster) -> Result<(), String> {
    let mut put = |key: &str, value: &str| data.insert(key.to_owned(), value.as_bytes().to_vec());
    put(ENDPOINT_KEY, cluster.server.as_deref().ok_or("its cluster names no server")?);
    if let Some(name) = &cluster.tls_server_name {
        put(TLS_SERVER_NAME_KEY, name);
    }
    if let Some(url) = &cluster.proxy_url {
        put(PROXY_URL_KEY, url);
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        put(INSECURE_KEY, "true");
    } else if let Some(ca) = inline_or_file(
        cluster.certificate_authority_data.as_deref(),
        "certificate-authority",
        cluster.certificate_authority.as_deref(),
    )? {
        data.insert(CA_KEY.to_owned(), ca);
    }
    Ok(())
}

fn put_credential(data: &mut Data, user: &AuthInfo) -> Result<&'static str, String> {
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(
            "its user runs a credential plugin, which is not supported yet: use a token or client certificate".into()
        );
    }
    let token = match (&user.token, &user.token_file) {
        (Some(token), _) => Some(token.expose_secret().as_bytes().to_vec()),
        (None, Some(file)) => Some(read("tokenFile", file)?),
        (None, None) => None,
    };
    if let Some(token) = token {
        data.insert(TOKEN_KEY.to_owned(), token);
        return Ok("ServiceAccountToken");
    }
    let key = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let certificate = user.client_certificate_data.as_deref();
    let certificate = inline_or_file(certificate, "client-certificate", user.client_certificate.as_deref())?;
    let key = inline_or_file(key, "client-key", user.client_key.as_deref())?;
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Err("its user has neither a token nor a client certificate with key".into());
    };
    data.insert(TLS_CERT_KEY.to_owned(), certificate);
    data.insert(TLS_PRIVATE_KEY_KEY.to_owned(), key);
    Ok("X509Certificate")
}

fn inline_or_file(inline: Option<&str>, field: &str, file: Option<&str>) -> Result<Option<Vec<u8>>, String> {
    match (inline, file) {
        (Some(text), _) => STANDARD.decode(text).map(Some).map_err(|_| format!("its {field}-data is not base64")),
        (None, Some(path)) => read(field, path).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads the file that a field names. The error names the field and omits its value: a credential
/// pasted there must reach neither a log nor a caller.
fn read(field: &str, path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read the file that its {field} names: {}", words::io(&error)))
}

#[cfg(test)]
mod tests;
