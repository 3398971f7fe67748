//! A certificate request (`certificates.k8s.io/v1`) in the form that Open Cluster Management's hub
//! recognizes as an agent's. Its key is made here, and leaves this process only for the state
//! directory.

use api::ocm_agent::{ALL_CLUSTERS, CLUSTER_LABEL, OcmAgent, SIGNER};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::words::tame;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

/// Path of requests.
pub const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Limit of a cluster's undecided requests. Above it, an agent creates no other: it would bury
/// those that an administrator must read.
pub const MOST_OUTSTANDING: usize = 10;

/// As [`DnType::OrganizationName`].
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// Limit of a quoted text of the hub, in bytes.
const LONGEST_QUOTE: usize = 1 << 10;

/// A key whose certificate is requested, or will be.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Name of the request on the hub.
    pub name: String,
    /// PKCS #8, PEM.
    pub key: SecretString,
}

/// The progress of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// No administrator has decided yet.
    Waiting,
    /// The hub has not signed it yet.
    Approved,
    /// A person denied it, or the hub cannot sign it; with the reason given.
    Refused(String),
    /// PEM.
    Issued(Vec<u8>),
}

/// A new key (EC P-256), PEM.
pub fn new_key() -> Result<SecretString, rcgen::Error> {
    Ok(KeyPair::generate()?.serialize_pem().into())
}

/// The public key that belongs to `key`, DER (`SubjectPublicKeyInfo`). None if `key` is invalid.
pub fn public_key(key: &SecretString) -> Option<Vec<u8>> {
    KeyPair::from_pem(key.expose_secret()).ok().map(|key| key.subject_public_key_info())
}

/// The request for a certificate of `agent`, with the two organizations of a klusterlet's. Each of
/// them and the common name are in a relative name of their own, and no extension is requested: the
/// hub recognizes nothing else.
pub fn document(agent: &OcmAgent, pending: &Pending) -> Result<Value, rcgen::Error> {
    let key = KeyPair::from_pem(pending.key.expose_secret())?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, agent.organization());
    // Each type has one value.
    params.distinguished_name.push(DnType::CustomDnType(ORGANIZATION.to_vec()), ALL_CLUSTERS);
    params.distinguished_name.push(DnType::CommonName, agent.common_name());
    let pem = params.serialize_request(&key)?.pem()?;
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": pending.name, "labels": {CLUSTER_LABEL: agent.cluster}},
        "spec": {
            "signerName": SIGNER,
            "request": STANDARD.encode(pem),
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    }))
}

/// Whether a request on the hub is the one for `key`, not another one of its name.
pub fn is_for(request: &Value, key: &SecretString) -> bool {
    let text = request["spec"]["request"].as_str().and_then(|text| STANDARD.decode(text).ok());
    let asked = text.and_then(|pem| {
        let (_, block) = parse_x509_pem(&pem).ok()?;
        let (_, asked) = X509CertificationRequest::from_der(&block.contents).ok()?;
        Some(asked.certification_request_info.subject_pki.raw.to_vec())
    });
    asked.is_some() && asked == public_key(key)
}

/// A text of the hub, quoted on one line and truncated.
pub fn quoted(text: &str) -> String {
    tame(&text[..text.floor_char_boundary(LONGEST_QUOTE)])
}

/// The number of undecided requests in a list.
pub fn outstanding(list: &Value) -> usize {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter(|item| Progress::of(item) == Progress::Waiting).count()
}

// === impl Progress ===

impl Progress {
    pub fn of(request: &Value) -> Self {
        let status = &request["status"];
        let certificate = status["certificate"].as_str().and_then(|text| STANDARD.decode(text).ok());
        if let Some(certificate) = certificate.filter(|certificate| !certificate.is_empty()) {
            return Self::Issued(certificate);
        }
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let said = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
        if let Some(no) = said("Denied").or_else(|| said("Failed")) {
            return Self::Refused(quoted(no["message"].as_str().unwrap_or_default()));
        }
        if said("Approved").is_some() { Self::Approved } else { Self::Waiting }
    }
}

#[cfg(test)]
mod tests {
    use register::csr::{Recognized, Request};

    use super::*;

    /// The hub's own check reads it.
    #[test]
    fn it_is_exactly_what_the_hub_recognizes() {
        let agent = OcmAgent { cluster: "berlin".to_owned(), agent: "a1b2".to_owned() };
        let pending = Pending { name: "r".to_owned(), key: new_key().unwrap() };
        let request = document(&agent, &pending).unwrap();
        assert_eq!(request["metadata"]["name"], "r");
        assert!(is_for(&request, &pending.key) && !is_for(&request, &new_key().unwrap()));
        assert!(!is_for(&json!({"spec": {"request": "bm90aGluZw=="}}), &pending.key));
        let pem = STANDARD.decode(request["spec"]["request"].as_str().unwrap()).unwrap();
        let usages: Vec<String> = serde_json::from_value(request["spec"]["usages"].clone()).unwrap();
        let judged = Request {
            signer: request["spec"]["signerName"].as_str().unwrap(),
            label: request["metadata"]["labels"][CLUSTER_LABEL].as_str(),
            pem: &pem,
            usages: &usages,
        };
        let recognized = Recognized { cluster: "berlin".to_owned(), agent: "a1b2".to_owned() };
        assert_eq!(judged.recognize(), Ok(recognized));
        let (_, block) = parse_x509_pem(&pem).unwrap();
        let (_, asked) = X509CertificationRequest::from_der(&block.contents).unwrap();
        let subject = &asked.certification_request_info.subject;
        let organizations: Vec<_> = subject.iter_organization().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(organizations, ["system:open-cluster-management:berlin", ALL_CLUSTERS], "a klusterlet's");
        assert!(!format!("{pending:?}").contains("PRIVATE"));
    }

    #[test]
    fn what_became_of_it_is_read() {
        let of = |status: Value| Progress::of(&json!({"status": status}));
        assert_eq!(of(Value::Null), Progress::Waiting);
        assert_eq!(of(json!({"conditions": [{"type": "Approved"}]})), Progress::Approved);
        let denied = json!({"conditions": [{"type": "Denied", "message": "who is this?"}]});
        assert_eq!(of(denied.clone()), Progress::Refused("who is this?".to_owned()));
        let (attack, cut) = (format!("a\nb\x1b[2J{}", "ä".repeat(4_096)), format!("a b [2J{}", "ä".repeat(508)));
        let long = json!({"conditions": [{"type": "Denied", "message": attack}]});
        assert_eq!(of(long), Progress::Refused(cut));
        let issued = json!({"conditions": [{"type": "Approved"}], "certificate": STANDARD.encode("PEM")});
        assert_eq!(of(issued.clone()), Progress::Issued(b"PEM".to_vec()));
        let list = json!({"items": [{"status": denied}, {"status": issued}, {"metadata": {}}, {"status": {}}]});
        assert_eq!(outstanding(&list), 2);
    }
}
