//! Watchers end up with the content of a list, whatever happens and however often they have to go
//! on elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use system_tests::prelude::*;

use super::{CLUSTERS, Event, Fixture, NAMESPACE, Watch, readable, unreadable};

const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters";
const MANAGED: Resource = Resource::ManagedClusters;

/// Clusters that come and go.
const NAMES: u64 = 12;
/// Changes of one run.
const CHANGES: u64 = 400;
/// Changes after which watchers are waited for: enough to go wrong in one breath, few enough that
/// they see most of it live.
const BREATH: u64 = 5;
/// The cluster that comes last of each breath.
const MARK: &str = "mark";
/// The cluster whose appearance ends a run.
const LAST: &str = "the-last";

/// A watcher that trusts all events.
struct Watcher {
    path: &'static str,
    objects: BTreeMap<String, String>,
    version: String,
    position: Position,
}

/// How far a watcher has come, for the run to see.
type Position = Arc<AtomicU64>;

// === impl Watcher ===

impl Watcher {
    async fn list(fixture: &Fixture, path: &'static str, position: Position) -> Self {
        let list = fixture.get(path).await.json();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let items = list["items"].as_array().expect("items").iter();
        let objects = items.map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["resourceVersion"])));
        let objects: BTreeMap<_, _> = objects.collect();
        let version = text(&list["metadata"]["resourceVersion"]);
        position.fetch_max(number(&version), SeqCst);
        Self { path, objects, version, position }
    }

    /// Watches, again and again, until it has seen [`LAST`]; lists again when its version is too
    /// old.
    async fn run(mut self, fixture: &Fixture) -> Self {
        loop {
            let (path, version) = (self.path, &self.version);
            let target = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
            let mut next_summary = BTreeSet::new();
            let mut watch = Watch::open(fixture.connect(Http::H2).await, &target).await;
            while let Some(event) = watch.next().await {
                if event.kind == "ERROR" {
                    assert_eq!(event.object["code"], 410, "{}", event.object);
                    self = Self::list(fixture, path, self.position).await;
                    break;
                }
                self.believe(&mut next_summary, &event);
            }
            if self.objects.contains_key(LAST) {
                return self;
            }
        }
    }

    fn believe(&mut self, next_summary: &mut BTreeSet<String>, event: &Event) {
        event.version().clone_into(&mut self.version);
        self.position.fetch_max(number(&self.version), SeqCst);
        let (name, version) = (event.name().to_owned(), event.version().to_owned());
        match event.kind.as_str() {
            "ADDED" | "MODIFIED" => drop(self.objects.insert(name.clone(), version)),
            "DELETED" => drop(self.objects.remove(&name)),
            "BOOKMARK" => return,
            kind => panic!("{kind}"),
        }
        // About objects from before its beginning, a resumed watch may say "added" or "modified" a
        // little wrongly.
        let known =
            if event.kind == "DELETED" { next_summary.remove(&name) } else { !next_summary.insert(name.clone()) };
        assert!(event.kind != "ADDED" || !known, "{name} is added twice");
    }
}

fn number(version: &str) -> u64 {
    version.parse().expect("versions are numbers")
}

/// A small generator: the same run each time.
struct Dice(u64);

// === impl Dice ===

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn managed(name: &str, turn: &str) -> Value {
    let configs = json!([{"url": "https://managed.example"}]);
    json!({"metadata": {"name": name, "labels": {"turn": turn}}, "spec": {"managedClusterClientConfigs": configs}})
}

async fn churn(fixture: &Fixture, seed: u64, positions: &[Position]) {
    let mut dice = Dice(seed);
    for change in 0..CHANGES {
        let name = format!("c{}", dice.roll(NAMES));
        let turn = change.to_string();
        match dice.roll(40) {
            0..14 => _ = fixture.hub.put_secret(readable(&name).label("turn", &turn)),
            14..20 => _ = fixture.hub.put(MANAGED, managed(&name, &turn)),
            20..24 => _ = fixture.hub.delete(MANAGED, "", &name),
            24..28 => _ = fixture.hub.put_secret(unreadable(&name).label("turn", &turn)),
            28..36 => _ = fixture.hub.delete_secret(NAMESPACE, &name),
            36 => fixture.hub.bookmark(),
            37 => fixture.hub.end_watches(),
            38 => fixture.hub.break_watches(),
            // A new list would make up for missed events: none at the end.
            _ if change < CHANGES / 2 => fixture.hub.compact(),
            _ => {}
        }
        if change % BREATH == 0 {
            let version = fixture.hub.put_secret(readable(MARK).label("turn", &turn));
            eventually(WAIT, || positions.iter().all(|position| position.load(SeqCst) >= version)).await;
        }
    }
    fixture.hub.put_secret(readable(LAST));
    fixture.hub.end_watches();
}

/// Two watchers of `path` during one run.
async fn run(path: &'static str, seed: u64) {
    let fixture = Fixture::set([readable("c1"), unreadable("c2")]).await;
    fixture.hub.install(MANAGED);
    // Noticed by this.
    fixture.get(VIRTUAL).await;
    fixture.hub.watching(MANAGED, 1).await;
    let positions = [Position::default(), Position::default()];
    let watchers = async {
        let [a, b] = positions.each_ref().map(|position| Watcher::list(&fixture, path, position.clone()));
        let (a, b) = (a.await, b.await);
        tokio::join!(a.run(&fixture), b.run(&fixture))
    };
    let ending = async {
        churn(&fixture, seed, &positions).await;
        // A watch that was opening just then would go on without the last order.
        let mut again = tokio::time::interval(Duration::from_millis(100));
        loop {
            again.tick().await;
            fixture.hub.end_watches();
        }
    };
    let (a, b) = tokio::select! {
        watchers = watchers => watchers,
        () = ending => unreachable!("it ends never"),
    };
    let list = Watcher::list(&fixture, path, Position::default()).await;
    assert_eq!(a.objects, list.objects, "seed {seed}");
    assert_eq!(b.objects, list.objects, "seed {seed}");
}

#[tokio::test]
async fn watchers_end_up_with_what_a_list_shows() {
    for seed in 1..=3 {
        run(CLUSTERS, seed).await;
    }
}

#[tokio::test]
async fn watchers_of_merged_streams_end_up_with_what_a_list_shows() {
    for seed in 1..=3 {
        run(VIRTUAL, seed).await;
    }
}
