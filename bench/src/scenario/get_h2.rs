//! The plainest case: small GETs over HTTP/2.

use super::About;
use super::closed_loop::{self, FIGURES};
use crate::contender::Contender;
use crate::figure::{BASELINE, Bound, DIRECT, GO, Goal, HAPROXY, KARMADA, NGINX, OURS, Target};
use crate::h2load::Shape;
use crate::proxies::{HAPROXY_2, NGINX_2, OURS_2, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::testbed::Testbed;
use crate::upstream::SMALL;

const TARGETS: [Target; 14] = [
    DIRECT,
    OURS,
    OURS_CALLER,
    OURS_KARMADA,
    OURS_KCP,
    OURS_USER_SERVER,
    BASELINE,
    GO,
    NGINX,
    HAPROXY,
    KARMADA,
    OURS_2,
    NGINX_2,
    HAPROXY_2,
];
const SHAPE: Shape = Shape::get(SMALL, 4, 8);

pub const ABOUT: About = About {
    name: "get-h2",
    title: "1 KiB GET over HTTP/2",
    method: "h2load on 4 connections with 8 requests at once on each, TLS 1.3 with AES-128-GCM on both sides, and a \
         bearer token that the gateways have already had reviewed. ours, nginx and HAProxy have one thread or worker \
         each; the Go gateway and Karmada's API server use all CPUs. ours, the Go gateway and HAProxy use HTTP/2 to \
         the upstream, nginx HTTP/1.1 on kept-alive connections, Karmada's server a new connection for each request. \
         nginx and HAProxy set the member's token on each request, as the gateways do, but do not authenticate the \
         caller. CPU is that of the proxy's processes (direct: of the upstream's), without h2load's. The rows with \
         two threads are for information: two CPUs are too few for two threads, the upstream and h2load. \
         \"as the caller\" impersonates the caller on the member, which Karmada's path always does.",
    figures: &FIGURES,
    goals: &[
        Goal::ratio("cpu_us", OURS, GO).must(Bound::AtMost(1.0 / 12.0)),
        Goal::ratio("rps", OURS, GO).must(Bound::AtLeast(6.0)),
        Goal::ratio("cpu_us", OURS, NGINX).must(Bound::AtMost(0.85)),
        Goal::ratio("cpu_us", OURS, HAPROXY).aim(Bound::AtMost(1.0)),
        Goal::ratio("cpu_us", OURS_KARMADA, OURS_CALLER).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_us", OURS_KARMADA, KARMADA).must(Bound::AtMost(1.0 / 20.0)),
        Goal::ratio("cpu_us", OURS_KCP, OURS).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_us", OURS_USER_SERVER, OURS).must(Bound::AtMost(1.03)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    closed_loop::contenders(testbed, &TARGETS, &SHAPE)
}
