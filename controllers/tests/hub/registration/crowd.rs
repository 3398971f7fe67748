//! Thousands of invalid requests, and a valid one among them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::{size, wait};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;
use tokio::time::Instant;

use super::agent::ask;
use super::{Registration, bootstrap, get, registers};
use crate::fixture::{SOON, each, print};
use crate::program::Program;

/// The number in the gate. The promise is for `TEST_REQUESTS=10000`; most of the time goes to the
/// hub, which reads and stores each of them.
const REQUESTS: usize = 2_000;
/// Keys for signing: one for each request would take longer than everything else.
const KEYS: usize = 8;
/// Events: the most that wait, and how many are sent per second.
const EVENTS: (u64, u64) = (1_024, 20);
/// Time for the approval of the valid request among them. Where the machine is slow or busy, half
/// of the time in which as many as in the gate are made, because the valid one does not wait for
/// all others. On two free cores, it takes a ninth of that.
const APPROVED_WITHIN: Duration = Duration::from_secs(5);
/// The most that all of them may add to the program's memory.
const MEMORY: u64 = 48 << 20;
/// Requests that are read at a time.
const PAGE: usize = 500;
const ALL: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CSR: &str = "cluster_gateway_controllers_csr_total";
const LABEL: &str = "crowd";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A request of an agent of `crowd1`, valid except for one fault.
#[derive(Clone)]
struct Asked {
    label: &'static str,
    organizations: Vec<&'static str>,
    common_name: &'static str,
    alternative_name: Option<&'static str>,
    signer: &'static str,
    usages: Vec<&'static str>,
    pem: Pem,
}

/// How the PEM of the request is written.
#[derive(Clone, Copy)]
enum Pem {
    One,
    /// With a second block, of another cluster's agent. The hub reads the first block only.
    Two,
    /// Signed with a key that is too short; the hub itself accepts it.
    Rsa1024,
    /// With an invalid signature, as by a client without the key.
    Forged,
}

/// A request of the agent of `good_one`, signed with a key of 1024 bits.
const RSA_1024: &str = include_str!("rsa1024.pem");

pub fn beside(testbed: &Testbed) -> Result<()> {
    let requests = size::of("TEST_REQUESTS", REQUESTS)?;
    let place = "crowd-place";
    let mut registration = Registration::start(testbed, place)?;
    let user = bootstrap(testbed, place)?;
    registration.running.stop()?;
    let mut program = registration.running.process(testbed, place)?;
    program.wait_to_say("leading")?;
    wait::until_true("that it stands in", SOON, || {
        Ok(program.metric("cluster_gateway_controllers_ocm_stands_in", "").is_ok_and(|it| it >= 1.0))
    })?;
    hub_refuses_forged(&user)?;
    // Until the hub enforces the policies that were just installed, no cluster is accepted.
    good(testbed, &user, "alone")?;
    let documents = documents()?;
    let before = program.process.most_resident()?;
    let began = Instant::now();
    let (made, approved) = std::thread::scope(|scope| {
        let crowd = scope.spawn(|| create(&user.kubeconfig, &documents, requests));
        // Among them, a valid request.
        wait::until_true("the first of them to be judged", SOON, || Ok(judged(&program)? >= 1.0))?;
        let approved = good(testbed, &user, "beside")?;
        ensure!(!crowd.is_finished(), "all of them were made before the good one was approved, after {approved:?}");
        anyhow::Ok((crowd.join().map_err(|_| anyhow!("it panicked"))??, approved))
    })?;
    // Requests for another signer are ignored and not counted.
    let all = (0..requests).filter(|number| documents[number % documents.len()].spec.signer_name == SIGNER).count();
    let all = f64::from(u32::try_from(all)?);
    // As many times longer as there are more of them than in the gate.
    let patience = 3 * SOON * u32::try_from(requests.div_ceil(REQUESTS))?;
    wait::until("all to be judged", patience, || {
        let judged = judged(&program)?;
        ensure!(judged >= all, "{judged} of {all}");
        Ok(())
    })?;
    let judged = began.elapsed();
    let more = program.process.most_resident()? - before;
    none_is_approved(testbed, requests)?;
    let events = events(testbed)?;
    let bound = EVENTS.0 + EVENTS.1 * began.elapsed().as_secs();
    print(&format!(
        "{requests} bad requests were made within {made:.1?} and judged within {judged:.1?}; the good one was approved \
         after {approved:.1?}; {} MiB more memory, {events} Events",
        more >> 20
    ));
    let half = made * u32::try_from(REQUESTS)? / (2 * u32::try_from(requests)?);
    let within = APPROVED_WITHIN.max(half);
    ensure!(approved < within, "the good one was approved after {approved:?}, and not within {within:?}");
    ensure!((1..=bound).contains(&events), "{events} Events, none or more than {bound}");
    ensure!(more < MEMORY, "{more} bytes more");
    // Before another replica leads, which would send the Events of all of them again.
    delete(testbed, requests)?;
    testbed.hub.server.delete("managedclusters alone beside")
}

/// The hub itself refuses a request whose signature does not match its key.
fn hub_refuses_forged(user: &Kubectl) -> Result<()> {
    let forged = Asked { pem: Pem::Forged, ..good_one() };
    let mut document = forged.document(&KeyPair::generate()?)?;
    document.metadata.name = Some("crowd-forged".to_owned());
    let told = user.send(&Method::POST, ALL, &[], &serde_json::to_value(&document)?)?;
    ensure!(told.status == StatusCode::UNPROCESSABLE_ENTITY, "{}", told.text());
    let told = told.text();
    ensure!(told.contains("spec.request: Invalid value") && told.contains("verification"), "{told}");
    Ok(())
}

/// Makes a valid request for the new `cluster`; returns the time until its approval.
fn good(testbed: &Testbed, user: &Kubectl, cluster: &str) -> Result<Duration> {
    registers(user, cluster)?;
    let good = ask(user, cluster, &format!("{cluster}-first"))?;
    let asked = Instant::now();
    good.wait_approved(testbed)?;
    Ok(asked.elapsed())
}

fn judged(program: &Program) -> Result<f64> {
    program.metric(CSR, "decision=\"unrecognized\"")
}

/// Reads them in pages: ten thousand in one response may take longer than tests wait for one.
fn none_is_approved(testbed: &Testbed, requests: usize) -> Result<()> {
    let hub = testbed.hub.server.client(Some(testbed.hub.server.admin()));
    let (mut found, mut next) = (0, Some(String::new()));
    while let Some(token) = next {
        let page = hub.get(&format!("{ALL}?labelSelector={LABEL}&limit={PAGE}&continue={token}"), &[])?;
        let page = page.expect(StatusCode::OK)?.json()?;
        let items = page["items"].as_array().context("a list")?;
        let decided = items.iter().find(|request| !request["status"].as_object().is_none_or(serde_json::Map::is_empty));
        ensure!(decided.is_none(), "{decided:?}");
        found += items.len();
        next = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
    }
    ensure!(found == requests, "{found} of {requests} are there");
    Ok(())
}

/// The number of Events about these requests.
fn events(testbed: &Testbed) -> Result<u64> {
    let all = get(testbed, "events.events.k8s.io --field-selector reason=RequestNotRecognized")?;
    let ours =
        |event: &&serde_json::Value| event["regarding"]["name"].as_str().is_some_and(|name| name.starts_with("crowd-"));
    Ok(u64::try_from(all["items"].as_array().context("a list")?.iter().filter(ours).count())?)
}

fn create(kubeconfig: &Path, documents: &[CertificateSigningRequest], requests: usize) -> Result<Duration> {
    let began = Instant::now();
    each(kubeconfig, requests.try_into()?, |client, number| async move {
        let (name, mut document) = (format!("crowd-{number}"), documents[number as usize % documents.len()].clone());
        document.metadata.name = Some(name.clone());
        Api::all(client).create(&PostParams::default(), &document).await.context(name)?;
        Ok(())
    })?;
    Ok(began.elapsed())
}

/// Deletes them, one by one: a hub that is to delete ten thousand by one request does not answer
/// in time.
fn delete(testbed: &Testbed, requests: usize) -> Result<()> {
    each(&testbed.hub.server.kubectl().kubeconfig, requests.try_into()?, |client, number| async move {
        let (name, all) = (format!("crowd-{number}"), Api::<CertificateSigningRequest>::all(client));
        all.delete(&name, &DeleteParams::default()).await.context(name)?;
        Ok(())
    })
}

/// Each fault with each key.
fn documents() -> Result<Vec<CertificateSigningRequest>> {
    let keys = (0..KEYS).map(|_| KeyPair::generate()).collect::<Result<Vec<_>, _>>()?;
    keys.iter().flat_map(|key| faults().into_iter().map(|fault| fault.document(key))).collect()
}

fn good_one() -> Asked {
    Asked {
        label: "crowd1",
        organizations: vec!["system:open-cluster-management:crowd1"],
        common_name: "system:open-cluster-management:crowd1:agent",
        alternative_name: None,
        signer: SIGNER,
        usages: vec!["digital signature", "key encipherment", "client auth"],
        pem: Pem::One,
    }
}

/// The names of an agent of another cluster.
fn another() -> Asked {
    let (organizations, common_name) =
        (vec!["system:open-cluster-management:crowd10"], "system:open-cluster-management:crowd10:agent");
    Asked { organizations, common_name, ..good_one() }
}

fn faults() -> Vec<Asked> {
    let good = good_one();
    let Asked { organizations: other, common_name: others, .. } = another();
    let named = |common_name| Asked { common_name, ..good.clone() };
    vec![
        Asked { label: "crowd10", ..good.clone() },
        Asked { label: "crowd", ..good.clone() },
        named("system:open-cluster-management:crowd10:agent"),
        named("system:open-cluster-management:crowd:agent"),
        named("system:open-cluster-management:crowd1:"),
        named("system:open-cluster-management:crowd1:agent:x"),
        named("system:open-cluster-management:crowd1"),
        Asked { organizations: other.clone(), ..good.clone() },
        Asked { label: "crowd10", organizations: other.clone(), ..good.clone() },
        Asked { common_name: others, organizations: other, ..good.clone() },
        Asked { label: "crowd10", common_name: others, ..good.clone() },
        Asked { pem: Pem::Two, ..good.clone() },
        Asked { pem: Pem::Rsa1024, ..good.clone() },
        Asked { organizations: vec![good.organizations[0], "system:open-cluster-management:crowd2"], ..good.clone() },
        Asked { alternative_name: Some("crowd1"), ..good.clone() },
        Asked { usages: vec!["digital signature", "key encipherment", "client auth", "server auth"], ..good.clone() },
        Asked { usages: vec!["digital signature"], ..good.clone() },
        Asked { signer: "example.com/other", ..good.clone() },
        Asked { label: "crowd10", alternative_name: Some("crowd1"), ..good },
    ]
}

// === impl Asked ===

impl Asked {
    fn request(&self, key: &KeyPair) -> Result<String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // Both are the attribute O: rcgen would keep only one entry of the same type.
        let kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
        for (kind, name) in kinds.into_iter().zip(&self.organizations) {
            params.distinguished_name.push(kind, *name);
        }
        params.distinguished_name.push(DnType::CommonName, self.common_name);
        if let Some(name) = self.alternative_name {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        Ok(params.serialize_request(key)?.pem()?)
    }

    fn document(&self, key: &KeyPair) -> Result<CertificateSigningRequest> {
        let pem = self.pem.of(&self.request(key)?, &another().request(key)?)?;
        Ok(serde_json::from_value(json!({
            "metadata": {"labels": {"open-cluster-management.io/cluster-name": self.label, LABEL: "yes"}},
            "spec": {"signerName": self.signer, "request": STANDARD.encode(pem), "usages": self.usages},
        }))?)
    }
}

// === impl Pem ===

impl Pem {
    fn of(self, good: &str, another: &str) -> Result<String> {
        match self {
            Self::One => Ok(good.to_owned()),
            Self::Two => Ok(format!("{good}{another}")),
            Self::Rsa1024 => Ok(RSA_1024.to_owned()),
            Self::Forged => {
                let lines: String = good.lines().filter(|line| !line.starts_with('-')).collect();
                let mut der = STANDARD.decode(lines)?;
                // Changes the last byte, which belongs to the signature.
                *der.last_mut().context("a request")? ^= 1;
                let name = "CERTIFICATE REQUEST";
                Ok(format!("-----BEGIN {name}-----\n{}\n-----END {name}-----\n", STANDARD.encode(der)))
            }
        }
    }
}
