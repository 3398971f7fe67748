//! The client certificate in the kubeconfig for the hub.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::AuthInfo;
use net::follow;
use net::tls::end::{End, InUse};

use super::client::current_user;

/// The client certificate of a kubeconfig, as of when this value was made. Clients read it once at
/// the start, and present that one until the process ends.
#[derive(Debug)]
pub struct ClientCertificate(End);

// === impl ClientCertificate ===

impl ClientCertificate {
    /// The client certificate of the current context, named by its own file, or by the kubeconfig
    /// if it is inline. `None` if there is none, or if it cannot be read: creating the client
    /// reports why.
    pub fn of(kubeconfig: &Path) -> Option<Self> {
        let (file, pem) = certificate(kubeconfig, &current_user(kubeconfig)?)?;
        End::in_pem(&file, &pem).map(Self)
    }
}

impl InUse for ClientCertificate {
    fn ends(&self) -> Vec<End> {
        vec![self.0.clone()]
    }
}

/// Inline data precedes a file, as in client-go (`clientcmd/api/types.go`).
fn certificate(kubeconfig: &Path, user: &AuthInfo) -> Option<(PathBuf, Vec<u8>)> {
    if let Some(data) = &user.client_certificate_data {
        return Some((kubeconfig.to_owned(), STANDARD.decode(data).ok()?));
    }
    let file = PathBuf::from(user.client_certificate.as_ref()?);
    let pem = follow::read(&file, follow::LONGEST).ok()?;
    Some((file, pem))
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    #[test]
    fn it_is_the_current_users_in_the_kubeconfig_or_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("hub.yaml");
        let issued = Authority::new("hub").issue(&Leaf::client("gateway"));
        std::fs::write(directory.path().join("gateway.crt"), &issued.chain_pem).unwrap();
        let end = |user: &str| {
            let text = format!(
                "{{current-context: here, contexts: [{{name: other, context: {{cluster: hub, user: nobody}}}}, \
                 {{name: here, context: {{cluster: hub, user: gateway}}}}], \
                 users: [{{name: gateway, user: {user}}}, {{name: nobody, user: {{}}}}]}}"
            );
            std::fs::write(&kubeconfig, text).unwrap();
            ClientCertificate::of(&kubeconfig).map(|certificate| certificate.ends().remove(0))
        };
        let at = net::tls::end::of(&issued.certificate_der).unwrap();
        let beside = End { file: directory.path().join("gateway.crt"), at };
        assert_eq!(end("{client-certificate: gateway.crt}"), Some(beside));
        let inside = format!("{{client-certificate-data: {}}}", STANDARD.encode(&issued.chain_pem));
        assert_eq!(end(&inside), Some(End { file: kubeconfig.clone(), at }));
        assert_eq!(end("{token: abc}"), None);
    }
}
