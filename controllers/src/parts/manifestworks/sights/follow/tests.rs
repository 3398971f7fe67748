use std::future::ready;

use http::Uri;
use kube::Client;
use serde_json::json;

use super::*;
use crate::parts::manifestworks::rest::LONGEST;
use crate::parts::manifestworks::sights::Lists;
use crate::scripted;
use crate::wakes::Wakes;

const RESYNC: Duration = Duration::from_mins(4);

/// When the member got requests for a watch, and for a list.
#[derive(Default)]
struct Asked {
    watches: Vec<Instant>,
    lists: Vec<Instant>,
}

/// Follows a member that answers watches with `code`.
async fn follow_for(time: Duration, code: u16) -> Asked {
    follow_telling(time, code, &Wakes::default()).await
}

async fn follow_telling(time: Duration, code: u16, answered: &Wakes) -> Asked {
    let asked = Arc::<Mutex<Asked>>::default();
    let theirs = Arc::clone(&asked);
    let member = scripted::client(move |head, _| {
        if !is_watch(&head.uri) {
            theirs.lock().lists.push(Instant::now());
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": "5"}, "items": []});
            return Some((200, list));
        }
        theirs.lock().watches.push(Instant::now());
        Some((code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code})))
    });
    let sights = Arc::<Mutex<ObservedObjects>>::default();
    let route = route(member, answered);
    let one = following("configmaps", &route, &sights);
    assert!(timeout(time, follow(one)).await.is_err(), "it never ends");
    std::mem::take(&mut *asked.lock())
}

fn route(client: Client, answered: &Wakes) -> Route {
    Route {
        cluster: "c".to_owned(),
        sender: client.into(),
        lists: Lists::default().of_one(),
        wakes: Wakes::default(),
        answered: answered.clone(),
        resync: RESYNC,
    }
}

fn following(resource: &str, route: &Route, sights: &Arc<Mutex<ObservedObjects>>) -> Follow {
    let scope = Scope {
        group: String::new(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        namespace: "n".to_owned(),
    };
    Follow { route: route.clone(), scope, is_watch: true, is_seeing: Arc::default(), sights: Arc::downgrade(sights) }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.contains("watch=true"))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_is_tried_again_after_an_hour_and_lists_come_meanwhile() {
    for code in [403, 405] {
        let asked = follow_for(REFUSED * 5 / 2, code).await;
        let between: Vec<Duration> = asked.watches.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(between.len(), 2, "{code}: {between:?}");
        assert!(between.iter().all(|time| *time >= REFUSED && *time < REFUSED + RESYNC), "{code}: {between:?}");
        // None is late. Early are only the one before each attempt of a watch, when the hour has
        // ended, and the one after it, in place of the watch.
        let between: Vec<Duration> = asked.lists.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(between.len() >= 30, "{code}: {between:?}");
        assert!(between.iter().all(|time| *time < RESYNC + BETWEEN_REQUESTS), "{code}: {between:?}");
        let early = between.iter().filter(|time| **time < RESYNC.mul_f64(1.0 - CHANCE)).count();
        assert!(early < 2 * asked.watches.len(), "{code}: {between:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_breaks_is_tried_again_at_once() {
    let asked = follow_for(Duration::from_secs(20), 500).await;
    assert!(asked.watches.len() >= 3, "{}", asked.watches.len());
}

#[tokio::test(start_paused = true)]
async fn the_first_list_that_succeeds_says_that_the_member_answers() {
    let answered = Wakes::default();
    follow_telling(Duration::from_secs(5), 403, &answered).await;
    assert_eq!(answered.waiting(), 1, "nobody is told");
    assert_eq!(answered.next().await, (String::new(), "c".to_owned()));
}

/// The times of requests to a member that refuses its lists, or only its watches, of two kinds, and
/// of five more that are followed a while later.
async fn turned_away(is_list: bool, after: Duration, time: Duration) -> Vec<Duration> {
    let asked = Arc::<Mutex<Vec<Instant>>>::default();
    let theirs = Arc::clone(&asked);
    let member = scripted::answering(move |request| {
        if !is_list && !is_watch(request.uri()) {
            let list = json!({"kind": "List", "metadata": {"resourceVersion": "5"}, "items": []});
            return ready(scripted::document(200, &list));
        }
        theirs.lock().push(Instant::now());
        // As an API server that reads no request.
        let mut busy = scripted::text(429, "Too many requests");
        busy.headers_mut().insert("retry-after", after.as_secs().into());
        ready(busy)
    });
    let (sights, began) = (Arc::<Mutex<ObservedObjects>>::default(), Instant::now());
    let route = route(member, &Wakes::default());
    let kinds = (0..7).map(|number| (number, following(&format!("kind{number}"), &route, &sights)));
    let all = kinds.map(|(number, one)| async move {
        sleep(if number < 2 { Duration::ZERO } else { after / 2 }).await;
        follow(one).await
    });
    assert!(timeout(time, futures_util::future::join_all(all)).await.is_err(), "they never end");
    asked.lock().iter().map(|at| *at - began).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_has_too_many_requests_is_left_alone_by_all() {
    let after = Duration::from_secs(30);
    for is_list in [true, false] {
        let asked = turned_away(is_list, after, after * 4).await;
        // The requests in flight at the time: two lists at most, and all watches.
        let of_one = if is_list { 2 } else { 7 };
        let mut waves: Vec<Vec<Duration>> = Vec::new();
        for at in asked {
            match waves.last_mut().filter(|wave| at < wave[0] + after) {
                Some(wave) => wave.push(at),
                None => waves.push(vec![at]),
            }
        }
        assert!(waves.len() >= 3, "{is_list}: it is asked again: {waves:?}");
        for wave in &waves {
            let is_soon = |at: &Duration| *at < wave[0] + BETWEEN_REQUESTS * 2;
            assert!(wave.len() <= of_one && wave.iter().all(is_soon), "{is_list}: {waves:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_left_alone_for_long() {
    let asked = turned_away(true, Duration::from_hours(24), LONGEST * 5 / 2).await;
    assert!(asked.last().is_some_and(|last| *last >= LONGEST * 2), "{asked:?}");
}

/// One that a list has, and one that comes later.
#[tokio::test(start_paused = true)]
async fn definitions_wake_the_works_that_lack_their_kinds() {
    let metadata = |name: &str| {
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": name, "resourceVersion": "6"}})
    };
    let member = scripted::answering(move |request| {
        if is_watch(request.uri()) {
            let event = format!("{}\n", json!({"type": "ADDED", "object": metadata("things.b.io")}));
            return ready(scripted::text(200, event));
        }
        let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "5"}, "items": [metadata("things.a.io")]});
        ready(scripted::document(200, &list))
    });
    let sights = Arc::<Mutex<ObservedObjects>>::default();
    let route = route(member, &Wakes::default());
    for group in ["a.io", "b.io", "c.io"] {
        let lacking = Identity { group: group.to_owned(), ..Identity::default() };
        sights.lock().awaited.set(group, [lacking].into());
    }
    let one = Follow { scope: Scope::definitions(), ..following("", &route, &sights) };
    let wakes = route.wakes.clone();
    assert!(timeout(Duration::from_secs(5), follow(one)).await.is_err(), "it never ends");
    let woken = [wakes.next().await, wakes.next().await].map(|(_, work)| work);
    assert!(woken.contains(&"a.io".to_owned()) && woken.contains(&"b.io".to_owned()), "{woken:?}");
    assert_eq!(wakes.waiting(), 0, "the third is woken, too");
}

/// A member that allows no watch, and whose definition changes after an hour.
#[tokio::test(start_paused = true)]
async fn definitions_that_are_listed_again_are_news_only_if_they_have_changed() {
    let began = Instant::now();
    let member = scripted::client(move |head, _| {
        if is_watch(&head.uri) {
            return Some((403, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403})));
        }
        let version = if began.elapsed() < Duration::from_hours(1) { "6" } else { "7" };
        let things = json!({"metadata": {"name": "things.a.io", "resourceVersion": version}});
        Some((200, json!({"metadata": {"resourceVersion": version}, "items": [things]})))
    });
    let sights = Arc::<Mutex<ObservedObjects>>::default();
    let route = route(member, &Wakes::default());
    let lacking = Identity { group: "a.io".to_owned(), ..Identity::default() };
    sights.lock().awaited.set("w", [lacking].into());
    let one = Follow { scope: Scope::definitions(), ..following("", &route, &sights) };
    let mut news = Vec::new();
    // The third would be one too many.
    let watched = async {
        for _ in 0..3 {
            route.wakes.next().await;
            sights.lock().awaited.take("w");
            news.push(began.elapsed().as_secs() / 3600);
        }
    };
    let both = futures_util::future::join(follow(one), watched);
    assert!(timeout(Duration::from_mins(150), both).await.is_err(), "it never ends");
    assert_eq!(news, [0, 1]);
}
