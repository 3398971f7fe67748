//! A work's status is restored when another client writes it.

use serde_json::json;

use super::*;

fn key() -> (String, String) {
    ("c1".to_owned(), "w".to_owned())
}

/// Its watch brings another client's write; returns whether that is news.
fn is_seen(part: &Part, hub: &Hub) -> bool {
    let version = hub.told()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    part.memories.saw(&key(), &version)
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_takes_away_is_put_back_and_not_in_a_loop() {
    let hub = Hub::default();
    hub.edit(|work| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "c1"}});
        work["spec"]["workload"]["manifests"] = json!([map]);
    });
    let (part, mut writer) = part(&hub);
    go_over(&part, &mut writer, &hub).await;
    let right = said(&hub.told()["status"], "Applied");
    assert_eq!(right, "True/AppliedManifestWorkComplete");
    assert!(!is_seen(&part, &hub), "that is what we wrote");
    hub.edit(|work| work["status"] = json!({}));
    assert!(is_seen(&part, &hub));
    once(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Applied"), right, "at once");
    assert!(!is_seen(&part, &hub));
    // An earlier status, of the same generation, again and again.
    let (begin, mut puts) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_mins(5) {
        hub.edit(|work| {
            work["status"]["conditions"] = json!([{"type": "Applied", "status": "False", "reason": "AppliedManifestWorkFailed",
                "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        });
        let action = once(&part, &mut writer, &hub).await;
        let is_put = said(&hub.told()["status"], "Applied") == right;
        assert!(is_put || action != Action::await_change(), "it is put back later");
        puts += usize::from(is_put);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!((2..=6).contains(&puts), "{puts}");
    // Another client adds a condition of its own.
    tokio::time::advance(Duration::from_mins(11)).await;
    go_over(&part, &mut writer, &hub).await;
    let writes = hub.writes().len();
    hub.edit(|work| {
        let theirs = json!({"type": "Theirs", "status": "True", "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        work["status"]["conditions"].as_array_mut().unwrap().push(theirs);
    });
    assert!(is_seen(&part, &hub));
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(hub.writes().len(), writes);
}

#[tokio::test(start_paused = true)]
async fn of_a_work_that_is_refused_the_status_is_not_written_in_a_loop_either() {
    let hub = Hub::default();
    hub.edit(|work| work["spec"]["workload"]["manifests"] = vec![json!({}); MOST_MANIFESTS + 1].into());
    let (part, mut writer) = part(&hub);
    let (begin, writes) = (Instant::now(), hub.writes().len());
    while begin.elapsed() < Duration::from_mins(5) {
        hub.edit(|work| work["status"] = json!({}));
        once(&part, &mut writer, &hub).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let writes = hub.writes().len() - writes;
    assert!((5..=80).contains(&writes), "{writes}");
}
