//! The hub as this crate knows it: the clients it is asked through.

use kube::Client;

/// Clients of the hub; they may be clones of one.
#[derive(Clone)]
pub struct Hub {
    /// For TokenReviews and the authentication ConfigMap (`--authentication-kubeconfig`).
    pub authentication: Client,
    /// For SubjectAccessReviews (`--authorization-kubeconfig`).
    pub authorization: Client,
}

// === impl Hub ===

impl From<Client> for Hub {
    fn from(client: Client) -> Self {
        Self { authentication: client.clone(), authorization: client }
    }
}
