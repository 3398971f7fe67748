//! The same small GETs as the hub sends them for its users: with its own certificate and the user
//! in headers.

use std::time::Duration;

use anyhow::Result;

use super::About;
use super::closed_loop::{self, FIGURES};
use crate::caller::indexed::Indexed;
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, GO, Goal, OURS, Sample, Target};
use crate::proxies;
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upstream::SMALL;

const OURS_FRONT: Target = "ours, front proxy";
const BASELINE_FRONT: Target = "ours before, front proxy";
const GO_FRONT: Target = "go gateway, front proxy";
/// Each target with its program, and whether it asks as the hub does.
const TARGETS: [(Target, Target, bool); 6] = [
    (OURS, OURS, false),
    (OURS_FRONT, OURS, true),
    (BASELINE, BASELINE, false),
    (BASELINE_FRONT, BASELINE, true),
    (GO, GO, false),
    (GO_FRONT, GO, true),
];
const CONNECTIONS: usize = 4;
const STREAMS: u32 = 8;
const GROUPS: usize = 20;

struct Asked {
    route: std::rc::Rc<Route>,
    caller: Indexed,
}

pub const ABOUT: About = About {
    name: "front-proxy",
    title: "1 KiB GET with front-proxy identity",
    method: "Our own client on 4 HTTP/2 connections with 8 requests at once on each (h2load has no client \
         certificates), for both kinds of rows. It sends a bearer token, or what the hub's aggregator sends: its \
         client certificate, X-Remote-User, 20 X-Remote-Group, two X-Remote-Extra and the other headers that it adds. \
         The user is the token's. Both are encoded as by Go's clients, the hub among them: a header that was sent \
         before on the connection, token or group, is one byte; only the path is spelled out each time.",
    figures: &FIGURES,
    goals: &[Goal::ratio("cpu_us", OURS_FRONT, OURS).must(Bound::AtMost(1.3)).aim(Bound::AtMost(1.0))],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    TARGETS.iter().map(|&(name, target, front)| Contender::new(name, Asked::new(testbed, target, front))).collect()
}

// === impl Asked ===

impl Asked {
    fn new(testbed: &mut Testbed, target: Target, front: bool) -> Result<Self> {
        let route = proxies::route(testbed, target)?;
        let hub = testbed.hub()?;
        let headers = headers();
        let (headers, identity) = if front { (Some(&*headers), Some(&hub.hub.front_proxy)) } else { (None, None) };
        Ok(Self { caller: Indexed::new(&route, SMALL, headers, identity)?, route })
    }
}

impl Load for Asked {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let before = self.route.tree.usage()?;
        let summary = runtime.block_on(self.caller.run(CONNECTIONS, STREAMS, time))?;
        closed_loop::sample(&self.route, before, summary.requests, summary.elapsed, Some(summary.mean))
    }
}

/// Headers that an aggregator puts on a request of the user whose token the other rows have.
fn headers() -> Vec<String> {
    let mut headers = vec!["X-Remote-User: system:serviceaccount:default:bench".to_owned()];
    headers.push("X-Remote-Group: system:authenticated".to_owned());
    headers.extend((1..GROUPS).map(|number| format!("X-Remote-Group: team-{number:02}:developers")));
    let others = [
        "X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id: JTI=5f7b0e2c-2c0c-4d1e-9a5e-0f8d5f0f4f6a",
        "X-Remote-Extra-Authentication.kubernetes.io%2fnode-Name: worker-1",
        "X-Forwarded-For: 10.0.0.1",
        "User-Agent: kubectl/v1.35.0 (linux/amd64) kubernetes/0000000",
        "Accept: application/json",
        "Accept-Encoding: gzip",
        "Audit-Id: 8f0c1f7e-6c55-4f0a-8a0a-0d6f3f1b2c3d",
    ];
    headers.extend(others.map(str::to_owned));
    headers
}
