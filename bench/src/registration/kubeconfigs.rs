//! Kubeconfigs as control planes write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::pki::{Authority, Leaf};

use crate::clusters::name;

/// Client certificates, in turn: one for each cluster would take longer to make than all the rest.
const CERTIFICATES: usize = 4;

/// Kubeconfigs of clusters that are all the same member.
pub struct Kubeconfigs {
    server: String,
    authority: String,
    /// Certificate and key.
    certificates: Vec<(String, String)>,
}

// === impl Kubeconfigs ===

impl Kubeconfigs {
    pub fn new(server: String, authority: &Authority) -> Self {
        let users = Authority::new("kubernetes");
        let issue = |_| {
            let issued = users.issue(&Leaf::client("kubernetes-admin").group("system:masters").rsa());
            (STANDARD.encode(issued.certificate_pem), STANDARD.encode(issued.key_pem))
        };
        let authority = STANDARD.encode(authority.root_pem());
        Self { server, authority, certificates: (0..CERTIFICATES).map(issue).collect() }
    }

    /// Whether the cluster `number` has a token: a managed control plane's is another one every few
    /// minutes. The others have a client certificate, as `KubeadmControlPlane` writes it.
    pub fn has_token(number: usize) -> bool {
        !number.is_multiple_of(2)
    }

    /// The kubeconfig of the cluster `number`, with `token` if it has one.
    pub fn of(&self, number: usize, token: &str) -> String {
        let (name, Self { server, authority, certificates }) = (name(number), self);
        let user = if Self::has_token(number) {
            format!("    token: {token}\n")
        } else {
            let (certificate, key) = &certificates[number % certificates.len()];
            format!("    client-certificate-data: {certificate}\n    client-key-data: {key}\n")
        };
        format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    \
             server: {server}\n  name: {name}\ncontexts:\n- context:\n    cluster: {name}\n    user: {name}-admin\n  \
             name: {name}-admin@{name}\ncurrent-context: {name}-admin@{name}\nkind: Config\npreferences: {{}}\n\
             users:\n- name: {name}-admin\n  user:\n{user}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_cluster_has_a_token() {
        let all = Kubeconfigs::new("https://127.0.0.1:6443".to_owned(), &Authority::new("member"));
        let (certificate, token) = (all.of(4, "secret"), all.of(5, "secret"));
        assert!(certificate.contains("client-key-data: ") && !certificate.contains("secret"), "{certificate}");
        assert!(token.ends_with("- name: c-00005-admin\n  user:\n    token: secret\n"), "{token}");
        assert!(token.contains("\n    server: https://127.0.0.1:6443\n  name: c-00005\n"), "{token}");
    }
}
