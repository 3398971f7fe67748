//! Follows the Leases of all clusters, and computes when their agents count as silent.
//!
//! A renewal only changes numbers here: no work follows. The controllers look at a cluster when its
//! agent falls silent, by a timer, or comes back.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use parking_lot::{Mutex, MutexGuard};
use register::csr::CLUSTER_LABEL;
use register::ocm;
use register::ocm::condition::{self, CLOCK_SYNCED};
use register::ocm::heartbeat::{Beat, LEASE, grace};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use super::hub_calls::now_millis;
use super::renewal::Renewal;
use crate::calls::{paged, watcher};
use crate::feed::bursts::Bursts;
use crate::feed::follow;
use crate::wakes::Wakes;

/// Longest wait: the clock that times are compared with may be set anew meanwhile.
const LONG: Duration = Duration::from_secs(1);
/// Milliseconds that the clock of the machine may differ from the time that passed without having
/// been set.
const DRIFT: i64 = 1000;

#[derive(Default)]
pub struct Beats {
    state: Mutex<Timetable>,
    sooner: Notify,
    listed: watch::Sender<bool>,
}

#[derive(Default)]
struct Timetable {
    /// By cluster.
    agents: HashMap<Arc<str>, Agent>,
    /// Times at which agents fall silent, the earliest first.
    due: BTreeSet<(i64, Arc<str>)>,
    /// Which come next, see [`Beats::some`].
    turn: usize,
    clock: Clock,
}

struct Agent {
    cluster: Arc<str>,
    /// None of a cluster that is not known.
    terms: Option<Terms>,
    /// None without a Lease.
    beat: Option<Beat>,
    /// When it is due.
    due: Option<i64>,
}

/// What a cluster says of its Lease.
#[derive(Debug, Clone, Copy)]
struct Terms {
    grace: i64,
    was_off: bool,
    is_accepted: bool,
}

/// The clock of the machine, which somebody may set.
struct Clock {
    seen: Instant,
    millis: i64,
}

// === impl Clock ===

impl Default for Clock {
    fn default() -> Self {
        Self::new(now_millis())
    }
}

impl Clock {
    fn new(now_millis: i64) -> Self {
        Self { seen: Instant::now(), millis: now_millis }
    }

    /// By how many milliseconds it was set since the last time, if it was.
    fn set_by(&mut self, now_millis: i64) -> Option<i64> {
        let before = std::mem::replace(self, Self::new(now_millis));
        let passed = i64::try_from((self.seen - before.seen).as_millis()).unwrap_or(i64::MAX);
        let by = (now_millis - before.millis).saturating_sub(passed);
        (by.abs() > DRIFT).then_some(by)
    }
}

// === impl Terms ===

impl Terms {
    fn of(cluster: &Value) -> Self {
        Self {
            grace: grace(cluster),
            was_off: condition::status(cluster, CLOCK_SYNCED) == Some("False"),
            is_accepted: ocm::is_accepted(cluster),
        }
    }
}

// === impl Beats ===

impl Beats {
    pub async fn listed(&self) {
        // The sender lives as long as this receiver.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// Takes a cluster as it is now: its Lease is judged by it from then on.
    pub fn learn(&self, name: &str, cluster: &Value) {
        self.state.lock().agent(name).terms = Some(Terms::of(cluster));
    }

    /// The cluster is gone. Its Lease may not be.
    pub fn unlearn(&self, name: &str) {
        self.state.lock().forget(name, |agent| agent.terms = None);
    }

    /// State of the Lease of `name`, scheduled anew because its grace may have changed.
    pub fn of(&self, name: &str, grace: i64) -> Option<Beat> {
        let (mut state, now) = self.state_now();
        let beat = state.agents.get(name)?.beat?;
        self.schedule(&mut state, name, beat.silent_from(grace), now);
        Some(beat)
    }

    /// Takes the current Lease of a cluster, and judges it by `cluster`, or without that by what
    /// was learnt of the cluster last. `renewed` is in milliseconds since 1970. Returns whether the
    /// cluster must be looked at.
    pub fn see(&self, name: &str, renewed: i64, cluster: Option<&Value>) -> bool {
        let (mut state, now) = self.state_now();
        let agent = state.agent(name);
        let terms = cluster.map(Terms::of).or(agent.terms).unwrap_or_else(|| Terms::of(&Value::Null));
        let before = agent.beat;
        let beat = match before {
            Some(before) => before.seen(renewed, now, terms.grace),
            None => Beat::found(renewed, now, terms.grace, terms.was_off),
        };
        agent.beat = Some(beat);
        self.schedule(&mut state, name, beat.silent_from(terms.grace), now);
        before.is_none_or(|before| before.is_synced != beat.is_synced || before.silent_from(terms.grace) <= now)
    }

    /// Takes a Lease that says no time, or cannot be read: it is not renewed. At first sight, the
    /// agent has its whole grace.
    pub fn see_unrenewed(&self, name: &str, cluster: Option<&Value>) -> bool {
        self.see_first(name, now_millis(), cluster)
    }

    /// Takes a Lease of a cluster that has none yet: of another, the watch has seen more.
    pub fn see_first(&self, name: &str, renewed: i64, cluster: Option<&Value>) -> bool {
        let is_known = self.state.lock().agents.get(name).is_some_and(|agent| agent.beat.is_some());
        !is_known && self.see(name, renewed, cluster)
    }

    /// The Lease is gone.
    pub fn forget(&self, name: &str) {
        let mut state = self.state.lock();
        state.cancel(name);
        state.forget(name, |agent| agent.beat = None);
    }

    /// Puts clusters into `wakes` when they fall silent. Never ends.
    pub async fn keep_time(&self, wakes: &Wakes) {
        loop {
            let wait = loop {
                let (mut state, now) = self.state_now();
                let Some((at, name)) = state.due.first().cloned() else { break LONG };
                if at > now {
                    break Duration::from_millis(u64::try_from(at - now).unwrap_or(0)).min(LONG);
                }
                state.cancel(&name);
                drop(state);
                wakes.push("", &name);
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.sooner.notified() => {}
            }
        }
    }

    /// Follows the Leases. Never ends.
    pub async fn follow(&self, client: Client, wakes: &Wakes) {
        let only = paged().fields(&format!("metadata.name={LEASE}")).labels(CLUSTER_LABEL);
        let mut listed = BTreeSet::new();
        let apply = |event: Event<Renewal>| match event {
            Event::Init => listed.clear(),
            Event::InitApply(lease) => {
                listed.insert(lease.cluster().to_owned());
                self.take(&lease, wakes);
            }
            Event::InitDone => {
                self.retain(&listed, wakes);
                listed.clear();
                self.listed.send_replace(true);
            }
            Event::Apply(lease) => self.take(&lease, wakes),
            Event::Delete(lease) => {
                self.forget(lease.cluster());
                wakes.push("", lease.cluster());
            }
        };
        let renewals = Bursts::of(watcher(Api::<Renewal>::all(client), only).boxed());
        follow::each(renewals, "the Leases of clusters", apply).await;
    }

    /// The names of some accepted clusters with a Lease, at most this many: others each time, if
    /// there are more. A Lease is not enough: a user who may edit any namespace may create one with
    /// this name there, and a user who may create clusters one with the namespace's name.
    pub fn some(&self, most: usize) -> Vec<String> {
        let state = &mut *self.state.lock();
        let is_accepted = |agent: &&Agent| agent.terms.is_some_and(|terms| terms.is_accepted);
        let known = || state.agents.values().filter(is_accepted).filter(|agent| agent.beat.is_some());
        let all = known().count();
        let first = state.turn.checked_rem(all).unwrap_or(0);
        let names = known().cycle().skip(first).take(most.min(all)).map(|agent| agent.cluster.to_string()).collect();
        state.turn = first + most;
        names
    }

    fn retain(&self, listed: &BTreeSet<String>, wakes: &Wakes) {
        let gone: Vec<Arc<str>> = {
            let state = self.state.lock();
            let with_lease = state.agents.values().filter(|agent| agent.beat.is_some());
            with_lease
                .filter(|agent| !listed.contains(&*agent.cluster))
                .map(|agent| Arc::clone(&agent.cluster))
                .collect()
        };
        for name in gone {
            self.forget(&name);
            wakes.push("", &name);
        }
    }

    fn take(&self, lease: &Renewal, wakes: &Wakes) {
        let name = lease.cluster();
        let is_due = match lease.renewed {
            Some(renewed) => self.see(name, renewed, None),
            None => self.see_unrenewed(name, None),
        };
        if is_due {
            wakes.push("", name);
        }
    }

    /// The state, and the time now that its times are compared with, in milliseconds since 1970:
    /// the first call after the clock was set corrects all of them.
    fn state_now(&self) -> (MutexGuard<'_, Timetable>, i64) {
        let mut state = self.state.lock();
        let now = now_millis();
        if let Some(by) = state.clock.set_by(now) {
            tracing::warn!(milliseconds = by, "the clock was set");
            state.clock_was_set(by, now);
        }
        (state, now)
    }

    /// Wakes who keeps the time only if this is the next one due: renewals are not, and there are
    /// many.
    fn schedule(&self, state: &mut Timetable, name: &str, at: i64, now: i64) {
        if state.schedule(name, at, now) {
            self.sooner.notify_one();
        }
    }
}

// === impl Timetable ===

impl Timetable {
    fn agent(&mut self, name: &str) -> &mut Agent {
        let new = |name: &Arc<str>| Agent { cluster: Arc::clone(name), terms: None, beat: None, due: None };
        self.agents.entry(name.into()).or_insert_with_key(new)
    }

    /// Of an agent of which nothing is known, nothing is kept.
    fn forget(&mut self, name: &str, forget: impl FnOnce(&mut Agent)) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        forget(agent);
        if agent.terms.is_none() && agent.beat.is_none() {
            self.agents.remove(name);
        }
    }

    /// Whether it is the next one due. Ignores a time that is past: the caller looks at the cluster
    /// now, and a timer would wake it again and again.
    fn schedule(&mut self, name: &str, at: i64, now: i64) -> bool {
        self.cancel(name);
        let Some(agent) = self.agents.get_mut(name).filter(|_| at > now) else { return false };
        agent.due = Some(at);
        let own = (at, Arc::clone(&agent.cluster));
        let is_next = self.due.first().is_none_or(|next| own < *next);
        self.due.insert(own);
        is_next
    }

    /// Otherwise all agents would be silent at once, or one that dies would live on until it is as
    /// late again.
    fn clock_was_set(&mut self, by: i64, now: i64) {
        self.due.clear();
        for agent in self.agents.values_mut() {
            let was_due = agent.due.take().is_some();
            let Some(beat) = &mut agent.beat else { continue };
            *beat = beat.set_by(by, now);
            let at = beat.silent_from(agent.terms.unwrap_or_else(|| Terms::of(&Value::Null)).grace);
            if was_due || at > now {
                agent.due = Some(at);
                self.due.insert((at, Arc::clone(&agent.cluster)));
            }
        }
    }

    fn cancel(&mut self, name: &str) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        if let Some(at) = agent.due.take() {
            self.due.remove(&(at, Arc::clone(&agent.cluster)));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn one_that_renews_is_left_alone_and_one_that_does_not_is_looked_at() {
        let (beats, wakes) = (Beats::default(), Wakes::default());
        let cluster = json!({"spec": {"leaseDurationSeconds": 60}});
        assert!(beats.see("quick", now_millis(), Some(&cluster)), "the first sight");
        beats.see("slow", now_millis() - 299_900, Some(&cluster));
        assert!(beats.see("quick", now_millis() + 1, Some(&cluster)), "its clock is told");
        assert!(!beats.see("quick", now_millis() + 2, Some(&cluster)), "nothing new but its life");
        let woken = tokio::select! {
            (_, name) = wakes.next() => name,
            () = beats.keep_time(&wakes) => String::new(),
        };
        assert_eq!(woken, "slow");
        assert!(beats.of("slow", grace(&cluster)).unwrap().silent_from(grace(&cluster)) <= now_millis());
        assert!(beats.state.lock().agents["slow"].due.is_none(), "who looked at it is not woken again by that");
        assert!(beats.see("slow", now_millis(), Some(&cluster)), "it is back");
        beats.forget("slow");
        assert!(beats.of("slow", grace(&cluster)).is_none());
    }

    /// Its time is one that a hub takes and this program cannot read.
    #[test]
    fn a_lease_that_cannot_be_read_is_not_renewed() {
        let (beats, wakes) = (Beats::default(), Wakes::default());
        let lease = |name: &str| lease(name, "9999-12-31T23:59:59.000000Z");
        let (grace, before) = (grace(&json!({})), now_millis());
        beats.take(&lease("new"), &wakes);
        let silent = beats.of("new", grace).unwrap().silent_from(grace);
        assert!(silent >= before + grace && silent <= now_millis() + grace, "a grace from its first sight");
        beats.see("old", before - 1000, None);
        let known = beats.of("old", grace).unwrap();
        beats.take(&lease("old"), &wakes);
        assert_eq!(beats.of("old", grace).unwrap(), known);
    }

    fn lease(cluster: &str, renewed: &str) -> Renewal {
        let spec = json!({"renewTime": renewed});
        serde_json::from_value(json!({"metadata": {"name": LEASE, "namespace": cluster}, "spec": spec})).unwrap()
    }

    /// Leases with this name in tenants' namespaces, and clusters that no user can change, must not
    /// be the only ones that are ever asked with.
    #[test]
    fn clusters_are_named_in_turn_and_what_is_no_cluster_never() {
        let beats = Beats::default();
        assert!(beats.some(3).is_empty());
        for name in ["c1", "c2", "c3", "c4", "tenant", "stranger"] {
            beats.see(name, now_millis(), None);
        }
        for name in ["c1", "c2", "c3", "c4", "no-lease"] {
            beats.learn(name, &json!({"spec": {"hubAcceptsClient": true}}));
        }
        beats.learn("stranger", &json!({}));
        let (first, second) = (beats.some(3), beats.some(3));
        assert_eq!((first.len(), second.len()), (3, 3));
        let all: BTreeSet<_> = first.into_iter().chain(second).collect();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), ["c1", "c2", "c3", "c4"]);
        assert_eq!(beats.some(9).len(), 4, "none twice");
    }

    /// Its Lease may be seen before it and after it.
    #[test]
    fn a_lease_is_judged_by_its_cluster_as_it_is_known() {
        let (beats, wakes) = (Beats::default(), Wakes::default());
        let ago = |seconds: i64| written(now_millis() - 1000 * seconds);
        let quick = json!({"spec": {"leaseDurationSeconds": 1}});
        beats.take(&lease("c1", &ago(10)), &wakes);
        assert!(beats.state.lock().agents["c1"].due.is_some(), "by default it has five minutes");
        beats.learn("c1", &quick);
        beats.take(&lease("c1", &ago(9)), &wakes);
        let beat = beats.of("c1", grace(&quick)).unwrap();
        assert_eq!(beat.is_synced, Some(false), "nine seconds are more than its grace");
        beats.unlearn("c1");
        beats.take(&lease("c1", &ago(8)), &wakes);
        assert_eq!(beats.of("c1", grace(&json!({}))).unwrap().is_synced, Some(true));
        beats.forget("c1");
        assert!(beats.state.lock().agents.is_empty(), "nothing is left of it");
        assert!(beats.state.lock().due.is_empty());

        // Its clock was wrong before, so its time says nothing of its age.
        let off = json!({"spec": {}, "status": {"conditions": [{"type": CLOCK_SYNCED, "status": "False"}]}});
        beats.learn("c2", &off);
        beats.take(&lease("c2", &ago(3600)), &wakes);
        assert!(beats.of("c2", grace(&off)).unwrap().silent_from(grace(&off)) > now_millis());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_is_told_from_time_that_passes() {
        let (mut clock, hour) = (Clock::new(1000), 3_600_000);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(clock.set_by(11_000), None);
        assert_eq!(clock.set_by(11_000 + hour), Some(hour));
        assert_eq!(clock.set_by(11_000), Some(-hour));
    }

    /// Whatever looks at a cluster between that and the next look at what is due.
    #[test]
    fn a_clock_that_was_just_set_makes_nobody_silent() {
        let (beats, hour) = (Beats::default(), 3_600_000);
        let (grace, now) = (grace(&json!({})), now_millis());
        // As it was an hour ago by a clock that has been set forward by an hour since.
        beats.see("c1", now, None);
        {
            let mut state = beats.state.lock();
            let agent = state.agents.get_mut("c1").unwrap();
            agent.beat = Some(Beat::found(now - hour, now - hour, grace, false));
            state.clock.millis -= hour;
        }
        assert!(beats.of("c1", grace).unwrap().silent_from(grace) > now, "it renewed a moment ago");
        assert!(beats.state.lock().agents["c1"].due.is_some_and(|at| at > now));
    }

    /// One died, and another one fell silent before the clock was set.
    #[test]
    fn who_is_silent_is_looked_at_whatever_the_clock_is_set_to() {
        let (beats, now, hour) = (Beats::default(), now_millis(), 3_600_000);
        let grace = grace(&json!({}));
        beats.see("dead", now - 1000, None);
        beats.see("silent", now - grace - 1000, None);
        let due = |name: &str| beats.state.lock().agents[name].due;
        beats.state.lock().clock_was_set(hour, now + hour);
        assert_eq!((due("dead"), due("silent")), (Some(now + hour - 1000 + grace), None), "as long as before");
        beats.state.lock().clock_was_set(-hour, now);
        assert_eq!((due("dead"), due("silent")), (Some(now + grace), Some(now + grace)), "and not in an hour");
        assert_eq!(beats.state.lock().due.len(), 2);
    }

    fn written(millis: i64) -> String {
        k8s_openapi::jiff::Timestamp::from_millisecond(millis).unwrap().to_string()
    }

    /// There are a hundred renewals a second, and each is due later than all others.
    #[test]
    fn only_what_is_due_next_wakes_who_keeps_the_time() {
        let beats = Beats::default();
        let is_woken = || beats.sooner.notified().now_or_never().is_some();
        let now = now_millis();
        beats.see("a", now - 2000, None);
        assert!(is_woken());
        beats.see("b", now - 1000, None);
        beats.see("a", now, None);
        assert!(!is_woken());
        beats.see("c", now - 3000, None);
        assert!(is_woken());
    }
}
