//! Many agents that join at once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use kit::pki::Authority;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::clusters;
use super::credential::{Asking, LABEL};
use crate::caller::Caller;
use crate::hub_objects::{self, MANY};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Pause between two looks at the requests.
const PAUSE: Duration = Duration::from_millis(100);
/// Open Cluster Management's controllers hold themselves back to 50 requests a second.
const LIMIT: Duration = Duration::from_mins(30);
/// Lease of a cluster that joins: it is not renewed afterwards.
const LEASE_SECONDS: u32 = 3600;

/// The hub that agents call, and its callers.
pub struct Agents {
    pub address: SocketAddr,
    pub authority: Arc<Authority>,
    /// May do everything.
    pub hub: Caller,
    /// May ask to join.
    pub bootstrap: Caller,
}

/// Times since all began to ask.
#[derive(Clone, Copy)]
pub struct Took {
    /// Time until all requests were approved.
    pub approved: Duration,
    /// Time until all agents have reported their clusters as available.
    pub available: Duration,
}

/// State of the requests of a crowd.
#[derive(Default)]
struct Known {
    approved: usize,
    certificates: HashMap<String, String>,
}

/// `count` clusters, whose names begin with `crowd`.
fn asking(crowd: &str, count: usize) -> Result<Arc<[Asking]>> {
    (0..count).map(|number| Asking::new(format!("{crowd}-{number:04}"))).collect()
}

// === impl Agents ===

impl Agents {
    async fn known(&self, connection: &SendRequest<Bytes>, crowd: &str) -> Result<Known> {
        let request = self.hub.get(&format!("{REQUESTS}?labelSelector={LABEL}%3D{crowd}"))?;
        let list: Value = serde_json::from_slice(&self.hub.ask(connection, request).await?)?;
        let mut known = Known::default();
        for request in list["items"].as_array().context("a list")? {
            let is_approved = request["status"]["conditions"][0]["type"] == "Approved";
            known.approved += usize::from(is_approved);
            let name = request["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(certificate) = request["status"]["certificate"].as_str() {
                known.certificates.insert(name.to_owned(), certificate.to_owned());
            }
        }
        Ok(known)
    }

    /// Approves `count` requests, as many at a time as the hub takes, and returns the time until it
    /// has signed all.
    pub async fn signed(&self, crowd: &str, count: usize) -> Result<Duration> {
        let (all, label) = (asking(crowd, count)?, crowd.to_owned());
        let make = move |number: usize| Ok((REQUESTS.to_owned(), all[number].document(&label, false)));
        hub_objects::create(&self.hub, count, Arc::new(make)).await?;
        let begin = Instant::now();
        let label = crowd.to_owned();
        let approve = move |hub: &Caller, number: usize| {
            let condition = json!({"type": "Approved", "status": "True", "reason": "Bench", "message": "measured"});
            let path = format!("{REQUESTS}/{label}-{number:04}/approval");
            hub.merge(&path, &json!({"status": {"conditions": [condition]}}))
        };
        hub_objects::send(&self.hub, count, MANY, Arc::new(approve)).await?;
        let connection = self.hub.connect().await?;
        while self.known(&connection, crowd).await?.certificates.len() < count {
            ensure!(begin.elapsed() < LIMIT, "the hub does not sign");
            sleep(PAUSE).await;
        }
        Ok(begin.elapsed())
    }

    /// Lets `count` agents ask at once, each for a cluster that the hub does not know, and waits
    /// for all.
    pub async fn join(&self, crowd: &str, count: usize) -> Result<Took> {
        let (all, label) = (asking(crowd, count)?, crowd.to_owned());
        let agents = Arc::clone(&all);
        let ask = move |number: usize| {
            let agent = &agents[number / 2];
            Ok(match number % 2 {
                0 => (clusters::collection(), clusters::managed(&agent.name, false, LEASE_SECONDS)),
                _ => (REQUESTS.to_owned(), agent.document(&label, true)),
            })
        };
        let begin = Instant::now();
        let asked = hub_objects::create(&self.bootstrap, 2 * count, Arc::new(ask));
        let (asked, took) = tokio::join!(asked, self.follow(crowd, &all, begin));
        asked.context("the agents cannot ask")?;
        took
    }

    /// Each goes on when its certificate is there.
    async fn follow(&self, crowd: &str, all: &[Asking], begin: Instant) -> Result<Took> {
        let connection = self.hub.connect().await?;
        let (mut approved, mut running, mut begun) = (None, JoinSet::new(), vec![false; all.len()]);
        while begun.contains(&false) {
            ensure!(begin.elapsed() < LIMIT, "not all have a certificate");
            sleep(PAUSE).await;
            let known = self.known(&connection, crowd).await?;
            if known.approved == all.len() {
                approved.get_or_insert_with(|| begin.elapsed());
            }
            for (agent, begun) in all.iter().zip(&mut begun) {
                if let Some(certificate) = known.certificates.get(&agent.name).filter(|_| !*begun) {
                    *begun = true;
                    let identity = agent.issued(certificate)?;
                    let caller = Caller::with_certificate(self.address, &self.authority, &identity);
                    let name = agent.name.clone();
                    running.spawn(async move {
                        let connection = caller.connect().await?;
                        clusters::begin(&caller, &connection, &name).await
                    });
                }
            }
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
        Ok(Took { approved: approved.context("none was approved")?, available: begin.elapsed() })
    }
}
