//! The log of a gateway whose member fails every request: a few lines, and how many were left out.

use std::cell::Cell;

use bytes::Bytes;
use http::Method;
use hub_tests::http::Response;
use hub_tests::ports;
use hub_tests::prelude::*;

use crate::access::{bearer, client};

const CLUSTER: &str = "flooded";
/// Lines that are written in one period, as docs/operations.md says.
const WRITTEN: u64 = 20;
const FLOOD: u64 = 25;
/// Longer than a period.
const LIMIT: Duration = Duration::from_secs(30);

/// Requests that failed so far.
pub struct Flood(Cell<u64>);

// === impl Flood ===

impl Flood {
    /// A member that nobody answers for, and who asks it nevertheless.
    pub fn start(testbed: &Testbed) -> Result<Self> {
        let nobody = format!("https://127.0.0.1:{}", ports::free()?);
        let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&nobody);
        testbed.hub.register_member(CLUSTER, &member)?;
        let flood = Self(Cell::new(0));
        let authorization = bearer(&testbed.token);
        let mut caller = client(testbed, Route::Gateway).keep()?;
        for _ in 0..FLOOD {
            flood.answered(caller.send(
                &Method::GET,
                &path(),
                &[("authorization", &authorization)],
                Bytes::new(),
            )?)?;
        }
        ensure!(lines(testbed)?.len() as u64 == WRITTEN, "{:?}", lines(testbed)?);
        Ok(flood)
    }

    fn ask(&self, testbed: &Testbed) -> Result<()> {
        let authorization = bearer(&testbed.token);
        self.answered(client(testbed, Route::Gateway).get(&path(), &[("authorization", &authorization)])?)
    }

    fn answered(&self, answer: Response) -> Result<()> {
        self.0.set(self.0.get() + 1);
        answer.expect(StatusCode::SERVICE_UNAVAILABLE).map(drop)
    }

    /// When its period is over, which it mostly is by now, the next line tells of the others.
    pub fn told(self, testbed: &Testbed) -> Result<()> {
        let line = wait::until("the line after the flood", LIMIT, || {
            self.ask(testbed)?;
            lines(testbed)?.into_iter().nth(usize::try_from(WRITTEN)?).context("it goes on")
        })?;
        let left_out = self.0.get() - WRITTEN - 1;
        ensure!(left_out > 0 && line.contains(&format!("suppressed={left_out}")), "{left_out} are left out: {line}");
        testbed.hub.forget_member(CLUSTER)
    }
}

fn path() -> String {
    format!("{}/version", Testbed::proxy_path(CLUSTER))
}

/// Of requests that it failed.
fn lines(testbed: &Testbed) -> Result<Vec<String>> {
    let is_its = |line: &&str| line.contains("request failed") && line.contains(&format!("cluster=\"{CLUSTER}\""));
    Ok(testbed.log()?.lines().filter(is_its).map(str::to_owned).collect())
}
