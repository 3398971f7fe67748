//! Certificate requests as an agent makes them, without an agent.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use kit::pki::PemFiles;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::get;
use crate::fixture::SOON;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldValidation=Strict";

/// A certificate request of an agent, and its key.
pub struct Asked {
    pub name: String,
    key: KeyPair,
}

/// The subject of a request, and the label of its object.
pub struct Subject<'a> {
    pub label: &'a str,
    pub organization: &'a str,
    pub common_name: &'a str,
}

// === impl Subject ===

impl Subject<'_> {
    /// Creates the request `name` as the user `who`.
    pub fn ask(&self, who: &Kubectl, name: &str) -> Result<Asked> {
        self.ask_with(who, &[], name)
    }

    /// The same, with further headers.
    pub fn ask_with(&self, who: &Kubectl, headers: &[(&str, &str)], name: &str) -> Result<Asked> {
        let key = KeyPair::generate()?;
        let request = self.document(name, &key)?;
        who.send(&Method::POST, REQUESTS, headers, &request)?.expect(StatusCode::CREATED)?;
        Ok(Asked { name: name.to_owned(), key })
    }

    /// The request as an object.
    pub fn document(&self, name: &str, key: &KeyPair) -> Result<Value> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, self.organization);
        params.distinguished_name.push(DnType::CommonName, self.common_name);
        let pem = params.serialize_request(key)?.pem()?;
        Ok(json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name, "labels": {"open-cluster-management.io/cluster-name": self.label}},
            "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "request": STANDARD.encode(pem),
                "usages": ["digital signature", "key encipherment", "client auth"]},
        }))
    }
}

/// Creates a valid request of an agent of `cluster`.
pub fn ask(who: &Kubectl, cluster: &str, name: &str) -> Result<Asked> {
    let own = format!("system:open-cluster-management:{cluster}");
    Subject { label: cluster, organization: &own, common_name: &format!("{own}:agent") }.ask(who, name)
}

/// Approves a request, as `kubectl certificate approve` does.
pub fn approve(testbed: &Testbed, name: &str) -> Result<()> {
    let path = format!("{}/{name}/approval", REQUESTS.split('?').next().unwrap_or_default());
    let approved = json!([{"type": "Approved", "status": "True", "reason": "KubectlApprove",
        "message": "This CSR was approved by kubectl certificate approve."}]);
    // Another client may write it meanwhile.
    wait::until("the approval to be taken", SOON, || {
        let mut request = get(testbed, &format!("csr {name}"))?;
        request["status"]["conditions"] = approved.clone();
        let answer = testbed.hub.server.ask(&Method::PUT, &path, "application/json", &request)?;
        answer.expect(StatusCode::OK).map(drop)
    })
}

// === impl Asked ===

impl Asked {
    fn object(&self, testbed: &Testbed) -> Result<Value> {
        get(testbed, &format!("csr {}", self.name))
    }

    pub fn is_approved(&self, testbed: &Testbed) -> Result<bool> {
        Ok(self.object(testbed)?["status"]["conditions"][0]["type"] == "Approved")
    }

    /// Waits for the approval; returns its reason.
    pub fn wait_approved(&self, testbed: &Testbed) -> Result<String> {
        wait::until(&format!("the approval of {}", self.name), SOON, || {
            let object = self.object(testbed)?;
            let condition = &object["status"]["conditions"][0];
            ensure!(condition["type"] == "Approved", "{}", object["status"]);
            Ok(condition["reason"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// kubectl with the issued certificate.
    pub fn kubectl(&self, testbed: &Testbed) -> Result<Kubectl> {
        let certificate = wait::until("the certificate", SOON, || {
            let object = self.object(testbed)?;
            object["status"]["certificate"].as_str().map(str::to_owned).context("not issued")
        })?;
        let files = PemFiles {
            certificate: testbed.launcher().file(&format!("{}.crt", self.name)),
            key: testbed.launcher().file(&format!("{}.key", self.name)),
        };
        std::fs::write(&files.certificate, STANDARD.decode(certificate)?)?;
        std::fs::write(&files.key, self.key.serialize_pem())?;
        let path = testbed.hub.server.kubeconfig(&self.name, Credential::Certificate(files))?;
        Ok(testbed.launcher().kubectl(&path))
    }
}
