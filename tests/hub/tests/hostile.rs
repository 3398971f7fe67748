//! The table of attacks on a connection ([`kit::hostile`]), between real API servers. Callers'
//! requests to the gateway share its connection to the member. Their requests to the hub, as far as
//! it forwards them, also share the hub's connection to the gateway.

mod relay;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread::available_parallelism;

use hub_tests::prelude::*;
use hub_tests::testbed::ALL_VERBS;
use kit::frames::{Places, Wire};
use kit::hostile::{Expected, Outcome, Row, rows};
use libtest_mimic::Trial;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

use self::relay::Relay;

/// The outcomes that come from the hub instead of the gateway, for rows that the hub forwards.
/// Nothing of the other rows ([`Row::by_hub`] is false) reaches the gateway: the hub's server ends
/// them in its own way.
const OF_THE_HUB: &[(&str, &[Expected])] = &[
    // The hub forwards no trailers.
    ("trailers with a name of 70,000 bytes", &[Expected::Passed]),
    // Its proxy forwards no query that Go does not parse.
    ("10,001 parameters", &[Expected::Passed]),
];

/// The number of victims, and the most of them: more are added until each core of the gateway has
/// some, and thus its connection to the member. As many join later, when attacks go over other
/// connections.
const VICTIMS: usize = 4;
const MOST_VICTIMS: usize = 32;
/// Rounds of each attack.
const TURNS: usize = 2;
/// The fewest bytes that the gateway sends to a member for a request: its token. With fewer, it has
/// sent none.
const REQUEST: usize = 400;
/// Time for an attack to end.
const LIMIT: Duration = Duration::from_mins(1);
/// Time until an attack goes over the victims' connections, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);
/// Longest run of 429s: until the requests are answered that an earlier row left at the member.
const REFUSED: Duration = Duration::from_mins(1);
/// Pause before it is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// Attacks beside no victim before another victim joins: where other tests fill the hub's
/// connection only for a moment, the next attack goes over the victims' again.
const APART: usize = 3;

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let trial = |route: Route| {
        let name = format!("hostile::no attack via {} ends a watch or a log of others", route.name());
        test(fixture, name, move |testbed| table(testbed, route))
    };
    Route::PROXIED.into_iter().map(trial).collect()
}

/// Watches and followed logs, each pair on its own connection, opened once.
struct Victims<'a> {
    testbed: &'a Testbed,
    route: Route,
    cluster: String,
    relay: Relay,
    /// The connections that the victims are on: the attackers' requests share these.
    connections: BTreeSet<usize>,
    namespace: String,
    wires: Vec<(Wire, u32, u32)>,
    /// The content of the log.
    log: String,
}

// === impl Victims ===

impl<'a> Victims<'a> {
    async fn begin(testbed: &'a Testbed, route: Route) -> Result<Self> {
        let cluster = format!("hostile-{}", route.name());
        let to = testbed.member.server.url().trim_start_matches("https://").to_owned();
        let relay = Relay::start(to).await?;
        let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&relay.url());
        testbed.hub.register_member(&cluster, &secret)?;
        let namespace = cluster.clone();
        testbed.member.server.create_namespace(&namespace)?;
        testbed.member.run_pod(&namespace, "talker", "")?;
        testbed.member.server.kubectl().ok(&format!("create configmap seen -n {namespace}"))?;
        let (wires, connections) = (Vec::new(), BTreeSet::new());
        let mut victims = Self { testbed, route, cluster, relay, connections, namespace, wires, log: String::new() };
        // Usually the hub has one connection to the gateway for all callers.
        let cores = if route == Route::Hub { 1 } else { available_parallelism()?.get() };
        while victims.wires.len() < VICTIMS || victims.connections.len() < cores && victims.wires.len() < MOST_VICTIMS {
            victims.join().await?;
        }
        victims.go_on(0, "nothing").await?;
        Ok(victims)
    }

    /// One more victim, which may be on another connection to the member.
    async fn join(&mut self) -> Result<()> {
        let before = self.relay.bytes();
        let mut wire = wire(self.testbed, self.route, &self.cluster, &self.testbed.token).await?;
        let namespace = format!("{}/api/v1/namespaces/{}", Testbed::proxy_path(&self.cluster), self.namespace);
        let watch = format!("{namespace}/configmaps?fieldSelector=metadata.name=seen&watch=true");
        let watch = wire.request("GET", &watch, &[], true).await;
        let log = wire.request("GET", &format!("{namespace}/pods/talker/log?follow=true"), &[], true).await;
        let has_begun = |wire: &Wire| {
            let has_all = wire.seen(log).is_some_and(|seen| seen.text() == self.log);
            wire.seen(watch).is_some_and(|seen| seen.status.is_some()) && (self.log.is_empty() || has_all)
        };
        wire.until("the victim's watch and log", has_begun).await;
        self.connections.extend(self.asked_since(&before));
        self.wires.push((wire, watch, log));
        Ok(())
    }

    /// The connections to the member over which requests went since `before`.
    fn asked_since(&self, before: &[usize]) -> BTreeSet<usize> {
        let now = self.relay.bytes();
        (0..now.len()).filter(|number| now[*number] - before[*number] >= REQUEST).collect()
    }

    /// Causes a new event on each watch and a new line in each log, and checks that all of them
    /// arrive.
    async fn go_on(&mut self, number: usize, after: &str) -> Result<()> {
        self.testbed.member.server.annotate(&format!("configmap seen row={number} -n {}", self.namespace))?;
        let (event, line) = (format!(r#""row":"{number}""#), format!("line {number}\n"));
        let log = self.testbed.member.container(&self.namespace, "talker").join("main.log");
        write!(std::fs::OpenOptions::new().append(true).open(log)?, "{line}")?;
        self.log += &line;
        for (wire, watch, log) in &mut self.wires {
            let (watch, log) = (*watch, *log);
            let text = |wire: &Wire, stream| wire.seen(stream).map(kit::frames::Seen::text).unwrap_or_default();
            let over = |wire: &Wire, stream| wire.seen(stream).is_some_and(kit::frames::Seen::is_over);
            wire.until(&format!("event and line after {after}"), |wire| {
                let came = text(wire, watch).contains(&event) && text(wire, log).ends_with(&line);
                came || over(wire, watch) || over(wire, log)
            })
            .await;
            ensure!(!wire.is_over(), "{after}: the victim's connection ended: {wire:?}");
            ensure!(!over(wire, watch), "{after}: the watch ended: {:?}", wire.seen(watch));
            ensure!(!over(wire, log), "{after}: the log ended: {:?}", wire.seen(log));
            ensure!(text(wire, log) == self.log, "{after}: the log is {:?}", text(wire, log));
            wire.take(watch);
        }
        Ok(())
    }
}

async fn wire(testbed: &Testbed, route: Route, cluster: &str, token: &str) -> Result<Wire> {
    let base = Testbed::proxy_path(cluster);
    let places = Places {
        quick: format!("{base}/version"),
        slow: format!("{base}/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=none&watch=true"),
        large: format!("{base}/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        upload: format!("{base}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    };
    let io = client(testbed, route).raw_h2().await?;
    Ok(Wire::over(io, places, &[("authorization", &bearer(token))]).await?)
}

/// Whether a status is the member's own answer, if the request was `sent` to it: the gateway's own
/// answers look alike.
fn is_the_members(status: u16, sent: bool) -> bool {
    sent && matches!(status, 200..=299 | 400 | 403..=406 | 409 | 413..=415 | 422)
}

/// The attacker's expected outcome through the hub, if it is the gateway's or is known otherwise.
fn through_hub(row: &Row) -> Option<&'static [Expected]> {
    let own = OF_THE_HUB.iter().find(|(name, _)| *name == row.name);
    own.map(|(_, expected)| *expected).or(row.by_hub.then_some(row.expected))
}

/// Returns how the attacker's outcome differs from the expected one.
async fn attack(victims: &mut Victims<'_>, row: &Row, token: &str) -> Result<Option<String>> {
    let begin = Instant::now();
    let (mut apart, mut refused) = (0_usize, None);
    loop {
        ensure!(begin.elapsed() < PATIENCE, "{}: for {PATIENCE:?}, 429 or beside no victim ({apart} times)", row.name);
        let mut wire = wire(victims.testbed, victims.route, &victims.cluster, token).await?;
        let before = victims.relay.bytes();
        let outcome = timeout(LIMIT, (row.attack)(&mut wire)).await.with_context(|| format!("{}: no end", row.name))?;
        // Requests that an earlier row left at the member count against its user until they are
        // answered.
        if matches!(outcome, Outcome::Answered { status: 429, .. }) {
            let first = *refused.get_or_insert_with(Instant::now);
            ensure!(first.elapsed() < REFUSED, "{}: nothing but 429 for {REFUSED:?}", row.name);
            sleep(PAUSE).await;
            continue;
        }
        refused = None;
        let sent_on = victims.asked_since(&before);
        // The hub opens another connection to the gateway when other tests fill its first, which
        // may lead to another core, with another connection to the member.
        if !sent_on.is_empty() && sent_on.is_disjoint(&victims.connections) {
            apart += 1;
            if apart.is_multiple_of(APART) {
                let (count, on) = (victims.wires.len(), &victims.connections);
                ensure!(
                    count < 2 * MOST_VICTIMS,
                    "{}: on {sent_on:?}, never beside {count} victims on {on:?}",
                    row.name
                );
                victims.join().await?;
            }
            sleep(PAUSE).await;
            continue;
        }
        let sent = !sent_on.is_empty();
        let expected = if victims.route == Route::Hub { through_hub(row) } else { Some(row.expected) };
        let is_the_members = |status, _: &str| is_the_members(status, sent);
        let wrong = expected.filter(|expected| !outcome.is_one_of(expected, is_the_members));
        return Ok(wrong.map(|expected| format!("{}: {outcome:?} instead of {expected:?}", row.name)));
    }
}

fn table(testbed: &Testbed, route: Route) -> Result<()> {
    let token = testbed.hub.create_user(&format!("mallory-{}", route.name()), &[], ALL_VERBS)?;
    Runtime::new()?.block_on(async {
        let mut victims = Victims::begin(testbed, route).await?;
        let mut wrong = Vec::new();
        for (number, row) in rows().enumerate() {
            for _ in 0..TURNS {
                wrong.extend(attack(&mut victims, row, &token).await?);
            }
            victims.go_on(number + 1, row.name).await?;
        }
        testbed.hub.forget_member(&victims.cluster)?;
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
}
