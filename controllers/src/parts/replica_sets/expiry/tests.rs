use serde_json::{Value, json};

use super::*;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_772_366_400).unwrap()
}

/// A work that was complete at [`now`], and stays for ten seconds.
fn complete(name: &str, change: impl FnOnce(&mut Value, &mut Value)) -> DynamicObject {
    let mut metadata = json!({"namespace": "c1", "name": name, "uid": name});
    let mut contents = json!({"spec": {"deleteOption": {"ttlSecondsAfterFinished": 10}, "workload": {"manifests": 3}},
        "status": {"conditions": [{"type": "Complete", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z"}]}});
    change(&mut metadata, &mut contents);
    let text = Value::String(contents.to_string());
    let object = json!({"apiVersion": "v1", "kind": "x", "metadata": metadata});
    DynamicObject { data: text, ..serde_json::from_value(object).unwrap() }
}

fn plain(name: &str) -> DynamicObject {
    complete(name, |_, _| ())
}

fn due(ends: &Ends, seconds: i64) -> Vec<String> {
    ends.due(now() + time::Duration::seconds(seconds)).0.into_iter().map(|(key, _)| key.1).collect()
}

/// A change of metadata and contents.
type Change = fn(&mut Value, &mut Value);

#[test]
fn a_work_ends_when_its_time_is_over_and_no_other_does() {
    let set = |metadata: &mut Value, _: &mut Value| metadata["labels"] = json!({SET_LABEL: "n.s"});
    let ending = |metadata: &mut Value, _: &mut Value| metadata["deletionTimestamp"] = json!("2026-03-01T12:00:01Z");
    let busy = |_: &mut Value, contents: &mut Value| contents["status"]["conditions"][0]["status"] = json!("False");
    let kept = |_: &mut Value, contents: &mut Value| contents["spec"]["deleteOption"] = json!({});
    let odd = |_: &mut Value, contents: &mut Value| contents["status"] = json!({"conditions": 3});
    let mut ends = Ends::default();
    let others: [(&str, Change); 5] = [("set", set), ("ending", ending), ("busy", busy), ("kept", kept), ("odd", odd)];
    for (name, change) in others {
        ends.take(&Event::Apply(complete(name, change)));
    }
    ends.take(&Event::Apply(plain("done")));
    assert_eq!((due(&ends, 9), ends.due(now()).1), (vec![], Some(now() + time::Duration::seconds(10))));
    assert_eq!(due(&ends, 10), ["done"]);
    ends.take(&Event::Apply(complete("done", busy)));
    assert_eq!(due(&ends, 10), Vec::<String>::new(), "it is complete no more");
}

/// A work that cannot be deleted is retried ever later, regardless of its changes.
#[test]
fn one_that_cannot_be_deleted_holds_no_other_up() {
    let mut ends = Ends::default();
    ends.take(&Event::Apply(plain("a")));
    ends.take(&Event::Apply(plain("b")));
    let key = ("c1".to_owned(), "a".to_owned());
    let end = now() + time::Duration::seconds(10);
    let waits: Vec<Duration> = (0..9).filter_map(|_| ends.failed(&key, end)).collect();
    assert!(waits[8] > Duration::from_mins(2), "{waits:?}");
    ends.take(&Event::Apply(plain("a")));
    assert_eq!(due(&ends, 11), ["b"]);
    assert_eq!(due(&ends, 10 + 301), ["b", "a"]);
    // Another work of its name has a time of its own.
    ends.take(&Event::Apply(complete("a", |metadata, _| metadata["uid"] = json!("another"))));
    assert_eq!(due(&ends, 11), ["a", "b"]);
}

#[test]
fn what_a_list_lacks_is_gone() {
    let mut ends = Ends::default();
    ends.take(&Event::Apply(plain("a")));
    ends.take(&Event::Apply(plain("b")));
    for event in [Event::Init, Event::InitApply(plain("b")), Event::InitDone] {
        ends.take(&event);
    }
    assert_eq!(due(&ends, 11), ["b"]);
    ends.take(&Event::Delete(plain("b")));
    assert!(due(&ends, 11).is_empty() && ends.known.is_empty() && ends.line.is_empty());
}
