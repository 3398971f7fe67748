//! The user at the other end, by the client certificate of the connection.

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The presented client certificate, already verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// CN of the subject: the user.
    pub common_name: String,
    /// Each O of the subject, in order: the groups.
    pub organisations: Vec<String>,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(tls: &TlsStream<TcpStream>) -> Option<Self> {
        let certificate = tls.get_ref().1.peer_certificates()?.first()?;
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let subject = certificate.subject();
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().unwrap_or_default().to_owned()
        };
        Some(Self {
            common_name: subject.iter_common_name().next().map(text).unwrap_or_default(),
            organisations: subject.iter_organization().map(text).collect(),
        })
    }
}
