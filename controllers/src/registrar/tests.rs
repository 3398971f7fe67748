//! Clusters while the hub fails: no registration ends, and changes are written once the hub works
//! again.

mod derived;
mod hub;
mod left;
mod managers;
mod pairs;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use self::hub::{CLUSTERS, Call, FLEET, Fault, Hub};
use super::{Feed, FeedState, Registrar, Source};
use crate::args::{Config, parse_from};
use crate::events::Events;
use crate::metrics::Metrics;
use crate::reports::{Reports, Stage};
use crate::secrets::Secrets;
use crate::term::Term;
use crate::wakes::Wakes;
use crate::{feed, sources};

const FAULTS: [Fault; 6] =
    [Fault::Status(429), Fault::Status(409), Fault::Status(410), Fault::Status(500), Fault::Status(503), Fault::Reset];
/// In the time of the paused clock, which stands still while a task can run.
const PATIENCE: Duration = Duration::from_mins(30);
const LOOK: Duration = Duration::from_millis(50);

/// A leader. It ends when dropped.
struct Leader {
    reports: Arc<Reports>,
    /// Number of times that a cluster was derived from an object.
    derived: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

// === impl Leader ===

impl Leader {
    fn of(hub: &Hub) -> Self {
        let arguments = ["cluster-gateway-controllers", "--enable=kubeconfig", "--watch-namespaces=fleet"];
        let config = Config::new(&parse_from(arguments).unwrap()).unwrap();
        let (client, term, reports) = (hub.client(), Term::endless(), Arc::<Reports>::default());
        let metrics = Metrics::register(&mut Registry::default(), Arc::clone(&reports));
        let events = Events::start(client.clone(), metrics.events_left_out.clone(), term.clone());
        let (mut source, derived) = (sources::all(&config, &client, &client).remove(0), Arc::default());
        source.reader = Arc::new(derived::Counted { reader: source.reader, times: Arc::clone(&derived) });
        let source = Arc::new(source);
        let wakes = Wakes::default();
        let namespace = Some(FLEET.to_owned());
        let seen = Feed { namespace: namespace.clone(), wakes: wakes.clone(), state: FeedState::Starting };
        let known = HashMap::from([("kubeconfig", Source { events: events.clone(), feeds: vec![seen] })]);
        let secrets = Secrets::new(client, CLUSTERS);
        let told = (Arc::clone(&reports), metrics.clone());
        let registrar = Arc::new(Registrar::new((secrets.clone(), events), known, 20, told, term.may_write()));
        let feed = feed::Feed {
            source,
            index: 0,
            namespace,
            wakes,
            registrar: Arc::clone(&registrar),
            reports: Arc::clone(&reports),
            metrics,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(feed.run());
        tasks.spawn(feed::watch::holders(secrets, Arc::clone(&registrar)));
        let (clock, ends) = (Arc::clone(&registrar), registrar);
        tasks.spawn(async move { clock.keep_time().await });
        tasks.spawn(async move { ends.remove_all().await });
        Self { reports, derived, _tasks: tasks }
    }

    fn registered(&self) -> usize {
        self.reports.list().iter().filter(|report| report.state == Stage::Registered).count()
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        sleep(LOOK).await;
    }
}

/// A hub with this many registered clusters, `c0` and on, and the leader that registered them.
async fn registered(clusters: usize) -> (Hub, Leader) {
    let hub = Hub::default();
    for number in 0..clusters {
        hub.put_source(&format!("c{number}"), "first");
    }
    let leader = Leader::of(&hub);
    until("all to be registered", || leader.registered() == clusters).await;
    hub.forget_asked();
    (hub, leader)
}

fn writes(hub: &Hub) -> usize {
    hub.asked(Call::Write, CLUSTERS).len() + hub.asked(Call::Remove, CLUSTERS).len()
}

#[tokio::test(start_paused = true)]
async fn what_a_hub_refuses_for_now_is_written_later_and_once() {
    for fault in FAULTS {
        let hub = Hub::default();
        let leader = Leader::of(&hub);
        hub.fail(Call::Read, FLEET, [fault, fault]);
        hub.fail(Call::Write, CLUSTERS, [fault; 3]);
        hub.put_source("c0", "first");
        until("the cluster", || leader.registered() == 1).await;
        let tries = hub.asked(Call::Write, CLUSTERS);
        let took = tries[3] - tries[0];
        assert!(tries.len() == 4 && hub.is_sound(), "{fault:?}: {tries:?}");
        assert!(took > Duration::from_secs(2), "{fault:?}: tried again at once: {took:?}");
        sleep(PATIENCE).await;
        assert_eq!(writes(&hub), 4, "{fault:?}: written again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_says_when_to_come_again_is_left_alone_until_then() {
    let hub = Hub::default();
    let leader = Leader::of(&hub);
    hub.fail(Call::Read, FLEET, [Fault::Busy(30)]);
    hub.fail(Call::Write, CLUSTERS, [Fault::Busy(60), Fault::Status(429)]);
    hub.put_source("c0", "first");
    until("the cluster", || leader.registered() == 1).await;
    let [reads, writes] = [(Call::Read, FLEET), (Call::Write, CLUSTERS)].map(|(call, at)| hub.asked(call, at));
    assert!(reads[1] - reads[0] >= Duration::from_secs(30), "{reads:?}");
    assert!(writes[1] - writes[0] >= Duration::from_mins(1), "{writes:?}");
    assert!(writes[2] - writes[1] >= Duration::from_secs(1), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_fails_is_tried_again() {
    for fault in FAULTS {
        let (hub, _leader) = registered(2).await;
        hub.fail(Call::Remove, CLUSTERS, [fault; 3]);
        hub.delete(FLEET, "c0");
        until("its end", || hub.cluster("c0").is_none()).await;
        assert!(hub.cluster("c1").is_some() && hub.is_sound(), "{fault:?}");
        assert_eq!(writes(&hub), 4, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_end_no_registration_and_one_that_ended_meanwhile_goes() {
    for fault in FAULTS {
        let (hub, leader) = registered(5).await;
        drop(leader);
        for at in [FLEET, CLUSTERS] {
            hub.fail(Call::List, at, [fault; 3]);
            // After a first page, the other pages fail.
            hub.fail(Call::Page, at, [fault, fault]);
        }
        hub.delete(FLEET, "c4");
        let leader = Leader::of(&hub);
        until("those that are there", || leader.registered() == 4).await;
        assert_eq!((writes(&hub), hub.is_sound()), (0, true), "{fault:?}: nothing changed");
        until("the end of the other", || hub.cluster("c4").is_none()).await;
        assert_eq!(writes(&hub), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_break_lose_nothing_and_end_nothing() {
    for fault in FAULTS {
        let (hub, _leader) = registered(3).await;
        for at in [FLEET, CLUSTERS] {
            hub.fail(Call::Watch, at, [fault, fault]);
            hub.interrupt(at, fault);
        }
        // The broken watch cannot report these changes, only its successor.
        let before = hub.cluster("c0");
        hub.put_source("c0", "second");
        hub.delete(CLUSTERS, "c1");
        hub.delete(FLEET, "c2");
        until("the other token", || hub.cluster("c0") != before).await;
        until("what somebody deleted", || hub.cluster("c1").is_some()).await;
        until("the end of the third", || hub.cluster("c2").is_none()).await;
        assert_eq!((writes(&hub), hub.is_sound()), (3, true), "{fault:?}");
        sleep(PATIENCE).await;
        assert_eq!(writes(&hub), 3, "{fault:?}: written again");
    }
}
