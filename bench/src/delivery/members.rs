//! The process of scripted members, as the bench has it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use http::header::{AUTHORIZATION, HeaderValue};
use hub_tests::wait;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::server::{COUNTS, MOODS};
use crate::caller::Caller;
use crate::clusters::token;
use crate::route::Destination;
use crate::stand_in::StandIn;

const START: Duration = Duration::from_secs(10);
/// Pause between two looks at an object that is to come.
const PAUSE: Duration = Duration::from_millis(1);
/// Limit for it to come.
const LIMIT: Duration = Duration::from_mins(1);

/// Requests to all members together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Requests without watches.
    pub requests: u64,
    /// Watches that began.
    pub watches: u64,
}

/// Ended on drop.
pub struct Members {
    pub stand_in: StandIn,
    caller: Caller,
}

// === impl Members ===

impl Members {
    pub fn start(directory: &Path) -> Result<Self> {
        let stand_in = StandIn::start(directory, "members", "serve-members")?;
        let client = hub_tests::http::Client::new(stand_in.address, &stand_in.authority, None);
        let answered = wait::until("the members", START, || client.get(COUNTS, &[])?.expect(http::StatusCode::OK));
        answered.with_context(|| stand_in.process.log_tail())?;
        let caller = Caller::trusting(stand_in.address, &stand_in.authority);
        Ok(Self { stand_in, caller })
    }

    /// The destination behind a route, as one of the members.
    pub fn called<'a>(&'a self, cluster: &'a str) -> Destination<'a> {
        let StandIn { address, authority, tree, .. } = &self.stand_in;
        Destination { cluster, address: *address, authority, tree, probe: "/version", upgrades: false }
    }

    pub async fn connect(&self) -> Result<SendRequest<Bytes>> {
        self.caller.connect().await
    }

    pub async fn counts(&self) -> Result<Counts> {
        let told = self.ask(COUNTS).await?;
        let count = |name: &str| told[name].as_u64().context("a count");
        Ok(Counts { requests: count("requests")?, watches: count("watches")? })
    }

    pub async fn feel(&self, number: usize, mood: &str) -> Result<()> {
        self.ask(&format!("{MOODS}{number}/{mood}")).await.map(drop)
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        let connection = self.connect().await?;
        Ok(serde_json::from_slice(&self.caller.ask(&connection, self.caller.get(path)?).await?)?)
    }

    /// Waits until the object at `path` of the member `number` says `text`.
    pub async fn wait_for(&self, connection: &SendRequest<Bytes>, number: usize, path: &str, text: &str) -> Result<()> {
        let begin = Instant::now();
        while !self.says(connection, number, path, text).await? {
            ensure!(begin.elapsed() < LIMIT, "{path} of member {number} does not say {text}");
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Whether the object at `path` of the member `number`, which has one, says `text`.
    pub async fn says(&self, connection: &SendRequest<Bytes>, number: usize, path: &str, text: &str) -> Result<bool> {
        let mut request = self.caller.get(path)?;
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", token(number)))?);
        Ok(String::from_utf8_lossy(&self.caller.ask(connection, request).await?).contains(text))
    }
}
