//! The log of a gateway whose member fails every request: a few lines, and the number of suppressed
//! ones.

use std::cell::Cell;

use bytes::Bytes;
use http::Method;
use hub_tests::http::Response;
use hub_tests::ports;
use hub_tests::prelude::*;
use kit::lines;
use tokio::time::Instant;

use crate::access::{bearer, client};

/// Lines that are written in one period, by docs/operations.md.
const WRITTEN: u64 = 20;
const FLOOD: u64 = 25;
/// After a period, a line reports how many were suppressed, and lines are written again.
const PERIOD: Duration = Duration::from_secs(10);
/// Longer than a period.
const LIMIT: Duration = Duration::from_secs(30);

/// A cluster, and how many requests for it failed so far.
pub struct Flood {
    cluster: String,
    failed: Cell<u64>,
}

// === impl Flood ===

impl Flood {
    /// Sends requests within one period to a member that does not answer.
    pub fn start(testbed: &Testbed) -> Result<Self> {
        let mut floods: Vec<Self> = Vec::new();
        wait::timely("a flood", PERIOD, || {
            let begin = Instant::now();
            floods.push(Self::of(testbed, format!("flooded-{}", floods.len()))?);
            Ok(begin.elapsed())
        })?;
        let flood = floods.pop().context("a flood")?;
        floods.iter().try_for_each(|slow| testbed.hub.forget_member(&slow.cluster))?;
        let lines = flood.lines(testbed)?;
        ensure!(lines.len() as u64 == WRITTEN, "{lines:?}");
        Ok(flood)
    }

    fn of(testbed: &Testbed, cluster: String) -> Result<Self> {
        let nobody = format!("https://127.0.0.1:{}", ports::free()?);
        let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&nobody);
        testbed.hub.register_member(&cluster, &member)?;
        let flood = Self { cluster, failed: Cell::new(0) };
        let authorization = bearer(&testbed.token);
        let mut caller = client(testbed, Route::Gateway).keep()?;
        for _ in 0..FLOOD {
            let headers = [("authorization", authorization.as_str())];
            flood.answered(caller.send(&Method::GET, &flood.path(), &headers, Bytes::new())?)?;
        }
        Ok(flood)
    }

    fn ask(&self, testbed: &Testbed) -> Result<()> {
        let authorization = bearer(&testbed.token);
        self.answered(client(testbed, Route::Gateway).get(&self.path(), &[("authorization", &authorization)])?)
    }

    fn answered(&self, answer: Response) -> Result<()> {
        self.failed.set(self.failed.get() + 1);
        answer.expect(StatusCode::SERVICE_UNAVAILABLE).map(drop)
    }

    /// Once the period is over, which it mostly is by now, the next line reports the suppressed
    /// ones.
    pub fn told(self, testbed: &Testbed) -> Result<()> {
        let line = wait::until("the line after the flood", LIMIT, || {
            self.ask(testbed)?;
            self.lines(testbed)?.into_iter().nth(usize::try_from(WRITTEN)?).context("it goes on")
        })?;
        let left_out = self.failed.get() - WRITTEN - 1;
        ensure!(left_out > 0 && line.contains(&format!("suppressed={left_out}")), "{left_out} are left out: {line}");
        testbed.hub.forget_member(&self.cluster)
    }

    fn path(&self) -> String {
        format!("{}/version", Testbed::proxy_path(&self.cluster))
    }

    /// The log's lines about its failed requests.
    fn lines(&self, testbed: &Testbed) -> Result<Vec<String>> {
        let cluster = format!("cluster=\"{}\"", self.cluster);
        let log = testbed.log()?;
        Ok(lines::with(&log, &[&cluster, "request failed"]).into_iter().map(str::to_owned).collect())
    }
}
