//! Watchers end up with what a list shows, whatever happens and however often they have to go on elsewhere.

use std::collections::BTreeMap;

use super::{CLUSTERS, Event, NAMESPACE, Stage, Watch, readable, unreadable};
use system_tests::Http;

/// Clusters that come and go.
const NAMES: u64 = 12;
/// Changes of one run.
const CHANGES: u64 = 400;
/// The cluster whose appearance ends a run.
const LAST: &str = "the-last";

/// A watcher that believes what it is told.
struct Watcher {
    objects: BTreeMap<String, String>,
    version: String,
}

// === impl Watcher ===

impl Watcher {
    async fn list(stage: &Stage) -> Self {
        let list = stage.get(CLUSTERS).await.json();
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let items = list["items"].as_array().expect("items").iter();
        let objects = items.map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["resourceVersion"])));
        Self { objects: objects.collect(), version: text(&list["metadata"]["resourceVersion"]) }
    }

    /// Watches, again and again, until it has seen [`LAST`]; lists anew when its version is too old.
    async fn run(mut self, stage: &Stage) -> Self {
        loop {
            let target = format!("{CLUSTERS}?watch=true&allowWatchBookmarks=true&resourceVersion={}", self.version);
            let mut watch = Watch::open(stage.connect(Http::H2).await, &target).await;
            while let Some(event) = watch.next().await {
                if event.kind == "ERROR" {
                    assert_eq!(event.object["code"], 410, "{}", event.object);
                    self = Self::list(stage).await;
                    break;
                }
                self.believe(&event);
            }
            if self.objects.contains_key(LAST) {
                return self;
            }
        }
    }

    fn believe(&mut self, event: &Event) {
        event.version().clone_into(&mut self.version);
        let (name, version) = (event.name().to_owned(), event.version().to_owned());
        let known = match event.kind.as_str() {
            "ADDED" | "MODIFIED" => self.objects.insert(name.clone(), version),
            "DELETED" => self.objects.remove(&name),
            "BOOKMARK" => return,
            kind => panic!("{kind}"),
        };
        if event.kind == "ADDED" {
            assert_eq!(known, None, "{name} is added twice");
        }
    }
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

async fn churn(stage: &Stage, seed: u64) {
    let mut dice = Dice(seed);
    for change in 0..CHANGES {
        let name = format!("c{}", dice.roll(NAMES));
        let turn = change.to_string();
        match dice.roll(40) {
            0..20 => drop(stage.hub.put_secret(readable(&name).label("turn", &turn))),
            20..28 => drop(stage.hub.put_secret(unreadable(&name).label("turn", &turn))),
            28..36 => drop(stage.hub.delete_secret(NAMESPACE, &name)),
            36 => stage.hub.bookmark(),
            37 => stage.hub.end_watches(),
            38 => stage.hub.break_watches(),
            _ => stage.hub.compact(),
        }
        tokio::task::yield_now().await;
    }
    stage.hub.put_secret(readable(LAST));
    stage.hub.end_watches();
}

#[tokio::test]
async fn watchers_end_up_with_what_a_list_shows() {
    for seed in [1, 2, 3] {
        let stage = Stage::set([readable("c1"), unreadable("c2")]).await;
        let watchers = async {
            let (a, b) = (Watcher::list(&stage).await, Watcher::list(&stage).await);
            tokio::join!(a.run(&stage), b.run(&stage))
        };
        let ending = async {
            churn(&stage, seed).await;
            // A watch that was opening just then would go on without the last order.
            let mut again = tokio::time::interval(std::time::Duration::from_millis(100));
            loop {
                again.tick().await;
                stage.hub.end_watches();
            }
        };
        let (a, b) = tokio::select! {
            watchers = watchers => watchers,
            () = ending => unreachable!("it ends never"),
        };
        let list = Watcher::list(&stage).await;
        assert_eq!(a.objects, list.objects, "seed {seed}");
        assert_eq!(b.objects, list.objects, "seed {seed}");
    }
}
