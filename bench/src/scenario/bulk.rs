//! Large bodies: down and up, one and eight at a time.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use super::{About, Scenario};
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, DIRECT, Figure, GO, Goal, HAPROXY, KARMADA, NGINX, OURS, Sample, Target};
use crate::h2load::{Amount, H2load, Shape};
use crate::proxies::{self, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upstream::{LARGE, SINK};

const TARGETS: [Target; 11] =
    [DIRECT, OURS, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER, BASELINE, GO, NGINX, HAPROXY, KARMADA];
const CPU: Figure = Figure::new("cpu_ms_per_mb", "CPU ms per MB", 2);
const RATE: Figure = Figure::new("mb_per_s", "MB per second", 0);
const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);
const SINGLE_REQUESTS: usize = 5;
const PARALLEL_REQUESTS: usize = 8;
const MEGABYTE: f64 = 1e6;

/// One of four rows.
#[derive(Clone, Copy)]
pub struct Bulk {
    upload: bool,
    parallel: bool,
}

struct Transfer {
    tool: H2load,
    route: Rc<Route>,
    shape: Shape,
    megabytes: f64,
}

/// What all four are asked for.
const ABOUT: About = About {
    name: "",
    title: "",
    method: "",
    figures: &[CPU, RATE, RESIDENT],
    goals: &[
        Goal::ratio("cpu_ms_per_mb", OURS, GO).must(Bound::AtMost(0.6)),
        Goal::ratio("cpu_ms_per_mb", OURS, NGINX).must(Bound::AtMost(1.0)).aim(Bound::AtMost(0.8)),
        Goal::ratio("cpu_ms_per_mb", OURS_KARMADA, OURS_CALLER).must(Bound::AtMost(1.03)),
        // A handshake a request is nothing beside 100 MiB: what is compared is the copying.
        Goal::ratio("cpu_ms_per_mb", OURS_KARMADA, KARMADA).must(Bound::AtMost(0.6)),
        Goal::ratio("cpu_ms_per_mb", OURS_KCP, OURS).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_ms_per_mb", OURS_USER_SERVER, OURS).must(Bound::AtMost(1.03)),
    ],
    axis: None,
};

/// The four, in the order of the report.
pub fn all() -> [Scenario; 4] {
    [
        Bulk { upload: false, parallel: false }.scenario(
            "download",
            "100 MiB download, one stream",
            "h2load downloads the file five times, one after the other, on one HTTP/2 connection; a stream may \
                 have 4 MiB unread, as with Go's clients. nginx downloads it over HTTP/1.1, the others over HTTP/2.",
        ),
        Bulk { upload: false, parallel: true }.scenario(
            "download-8",
            "100 MiB downloads, eight streams",
            "As with one stream, but eight at once on one connection, each downloading the file once.",
        ),
        Bulk { upload: true, parallel: false }.scenario(
            "upload",
            "100 MiB upload, one stream",
            "h2load uploads the file five times, one after the other, on one HTTP/2 connection. The upstream is \
                 nginx, which streams the body to a program that reads and discards it; the direct row includes both.",
        ),
        Bulk { upload: true, parallel: true }.scenario(
            "upload-8",
            "100 MiB uploads, eight streams",
            "As with one stream, but eight at once on one connection, each uploading the file once.",
        ),
    ]
}

// === impl Bulk ===

impl Bulk {
    fn scenario(self, name: &'static str, title: &'static str, method: &'static str) -> Scenario {
        let contender =
            move |testbed: &mut Testbed, target| Contender::new(target, Transfer::new(self, testbed, target));
        Scenario::new(About { name, title, method, ..ABOUT }, move |testbed| {
            Ok(TARGETS.iter().map(|&target| contender(testbed, target)).collect())
        })
    }

    fn shape(self, large: PathBuf) -> Shape {
        let (streams, requests) =
            if self.parallel { (PARALLEL_REQUESTS, PARALLEL_REQUESTS) } else { (1, SINGLE_REQUESTS) };
        let shape = Shape { amount: Amount::Requests(requests), ..Shape::get(LARGE, 1, streams) };
        if self.upload { Shape { path: SINK, upload: Some(large), ..shape } } else { shape }
    }
}

// === impl Transfer ===

impl Transfer {
    fn new(bulk: Bulk, testbed: &mut Testbed, target: Target) -> Result<Self> {
        let upstream = testbed.upstream()?;
        let shape = bulk.shape(upstream.large_file.clone());
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let megabytes = upstream.large as f64 / MEGABYTE;
        Ok(Self { tool: H2load::find()?, route: proxies::route(testbed, target)?, shape, megabytes })
    }
}

impl Load for Transfer {
    /// A fixed amount: the tool does not count a transfer that the end of a time cuts off.
    fn measure(&mut self, _: Duration) -> Result<Sample> {
        let before = self.route.tree.usage()?;
        let summary = self.tool.run(&self.route, &self.shape)?;
        let after = self.route.tree.usage()?;
        let megabytes = self.megabytes * summary.requests;
        let cpu = after.cpu.saturating_sub(before.cpu);
        Ok(Sample::from([
            (CPU.key, cpu.as_secs_f64() * 1e3 / megabytes),
            (RATE.key, megabytes / summary.elapsed.as_secs_f64()),
            (RESIDENT.key, super::closed_loop::mebibytes(after.resident)),
        ]))
    }
}
