//! The search for unlisted objects ends, for any number of them.

use delivery::work::ManifestCondition;
use http::Method;
use parking_lot::Mutex;

use super::*;

const LIST: &str = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks/h-w";
const SERVED: &str = r#"{"groups": [{"name": "work.open-cluster-management.io", "versions": [{"version": "v1"}]}]}"#;
/// Duration of each look.
const TAKES: Duration = Duration::from_millis(500);
const OBJECTS: usize = 600;

/// A member that lists nothing, but has each requested object, and records the requests.
fn forgetful(asked: &Arc<Mutex<Vec<String>>>) -> Arc<Target> {
    let asked = Arc::clone(asked);
    let client = scripted::answering(move |request| {
        let asked = Arc::clone(&asked);
        async move {
            let (head, said) = request.into_parts();
            let metadata = json!({"name": "h-w", "uid": "o", "resourceVersion": "7"});
            let answer = match head.uri.path() {
                "/apis" => SERVED.to_owned(),
                path if path.starts_with(LIST) => {
                    assert!(head.method == Method::GET || said["status"].is_object(), "{said}");
                    let status = said.get("status").cloned().unwrap_or_else(|| json!({}));
                    json!({"metadata": metadata, "spec": {}, "status": status}).to_string()
                }
                path => {
                    asked.lock().push(path.to_owned());
                    tokio::time::sleep(TAKES).await;
                    json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "o"}]}}).to_string()
                }
            };
            scripted::text(200, answer)
        }
    });
    Arc::new(Target::new(member(client), &shared()))
}

fn told(prefix: &str) -> Vec<ManifestCondition> {
    let one = |number: usize| {
        let name = format!("{prefix}{number}");
        json!({"resourceMeta": {"version": "v1", "resource": "configmaps", "namespace": "n", "name": name},
            "conditions": [{"type": "Applied", "status": "True", "reason": "r", "message": "",
                "lastTransitionTime": "2026-03-01T12:00:00Z"}]})
    };
    (0..OBJECTS).map(|number| serde_json::from_value(one(number)).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_one_turn_is_too_short_for_is_looked_for_in_the_next() {
    let (asked, told) = (Arc::default(), told("a"));
    let target = forgetful(&asked);
    let mut held = target.applied("h-w").await.unwrap().unwrap();
    let mut begun = Begun::default();
    let mut slots = 0;
    loop {
        slots += 1;
        let slot = target.slot("w").unwrap();
        match target.list_unlisted(&slot, &told, &mut held, &mut begun).await {
            Ok(()) => break,
            Err(Failure::SlotOver) => assert!(slots < 5, "it has no end"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(slots > 1, "it was too quick to tell");
    assert_eq!(held.tracked().len(), OBJECTS);
    // The requests in flight at the end of a slot are repeated.
    let asked = asked.lock().len();
    assert!((OBJECTS..OBJECTS + slots * crate::parts::manifestworks::REQUESTS).contains(&asked), "{asked}");
}

/// A user that may write statuses names others each time.
#[tokio::test(start_paused = true)]
async fn of_names_that_are_told_no_more_nothing_is_kept_and_of_those_that_are_told_twice_one_is_asked_for() {
    let asked = Arc::default();
    let target = forgetful(&asked);
    let mut begun = Begun::default();
    for prefix in ["a", "b", "c"] {
        let mut held = target.applied("h-w").await.unwrap().unwrap();
        let told = [told(prefix), told(prefix)].concat();
        asked.lock().clear();
        let mut slots = 0;
        loop {
            slots += 1;
            let slot = target.slot("w").unwrap();
            let listed = target.list_unlisted(&slot, &told, &mut held, &mut begun).await;
            assert!(begun.unlisted.len() <= OBJECTS, "{}", begun.unlisted.len());
            match listed {
                Ok(()) => break,
                Err(Failure::SlotOver) => assert!(slots < 5, "it has no end"),
                Err(error) => panic!("{error}"),
            }
        }
        let asked = asked.lock().len();
        assert!((OBJECTS..OBJECTS + slots * crate::parts::manifestworks::REQUESTS).contains(&asked), "{asked}");
    }
}
