use kube::runtime::reflector::store::Writer;
use serde_json::json;

use super::*;
use crate::parts::manifestworks::work::{FINALIZER, Work, works};

/// A work of this many bytes.
fn work(namespace: &str, name: &str, size: usize) -> DynamicObject {
    let metadata = json!({"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1",
        "generation": 3, "annotations": {"a": "x".repeat(1000)}, "ownerReferences": []});
    let object = json!({"apiVersion": "v1", "kind": "x", "metadata": metadata});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    DynamicObject { data: Json::from("x".repeat(size)), ..object }
}

struct Watch {
    shelf: Shelf,
    writer: Writer<DynamicObject>,
}

impl Watch {
    fn new(in_all: usize, of_one: usize) -> Self {
        let shelf = Shelf::new(MemoryLimits { in_all, of_one }, Delivery::default());
        Self { shelf, writer: Writer::new(works()) }
    }

    /// The works that are kept in full after these events.
    fn told(&mut self, events: impl IntoIterator<Item = Event<DynamicObject>>) -> Vec<String> {
        for event in events {
            let event = self.shelf.keep(event, &self.writer.as_reader());
            self.writer.apply_watcher_event(&event);
        }
        let all = self.writer.as_reader().state();
        let whole = all.iter().filter(|object| is_whole(object));
        let mut names: Vec<String> = whole.map(|object| object.name_any()).collect();
        names.sort();
        names
    }

    fn beyond(&self) -> usize {
        self.shelf.books.lock()[0].beyond
    }
}

fn list(works: Vec<DynamicObject>) -> Vec<Event<DynamicObject>> {
    let each = works.into_iter().map(Event::InitApply);
    [Event::Init].into_iter().chain(each).chain([Event::InitDone]).collect()
}

#[test]
fn one_namespace_takes_no_room_from_others() {
    let mut watch = Watch::new(1000, 300);
    let works = (0..20).map(|number| work("greedy", &format!("g{number:02}"), 100)).chain([work("other", "o", 100)]);
    let works: Vec<_> = works.collect();
    assert_eq!(watch.told(list(works.clone())), ["g00", "g01", "g02", "o"]);
    assert_eq!(watch.beyond(), 17);
    // A list that begins again counts from zero, even if the earlier one did not end.
    let mut broken = list(works.clone());
    broken.truncate(10);
    watch.told(broken);
    assert_eq!(watch.told(list(works)), ["g00", "g01", "g02", "o"]);
    assert_eq!((watch.beyond(), watch.shelf.books.lock()[0].in_all), (17, 400));
}

#[test]
fn all_together_take_no_more_than_there_is() {
    let mut watch = Watch::new(250, 200);
    let works = ["a", "b", "c"].map(|namespace| work(namespace, namespace, 100));
    assert_eq!(watch.told(list(works.to_vec())), ["a", "b"]);
    assert_eq!(watch.told([Event::Apply(work("a", "a", 200))]), ["b"], "it has grown");
    assert_eq!(watch.told([Event::Apply(work("a", "a", 100)), Event::Delete(work("b", "b", 100))]), ["a"]);
    assert_eq!(watch.told([Event::Apply(work("c", "c", 100))]), ["a", "c"], "there is room again");
    watch.told(["a", "c"].map(|name| Event::Delete(work(name, name, 100))));
    let books = &watch.shelf.books.lock()[0];
    assert_eq!((books.in_all, books.beyond, books.of_one.len()), (0, 0, 0));
}

/// Otherwise all of its objects would be removed.
#[test]
fn what_is_not_kept_looks_like_nothing_that_can_be_done() {
    let mut watch = Watch::new(0, 0);
    let mut object = work("c", "w", 1);
    object.metadata.labels = Some([("l".repeat(60), "v".to_owned())].into());
    object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    assert_eq!(watch.told([Event::Apply(object.clone())]), [""; 0]);
    let kept = watch.writer.as_reader().state().remove(0);
    let work = Work::read(&kept);
    assert!(work.spec.is_err() && work.delete_option.is_err() && work.executor.is_err());
    assert_eq!((work.uid.as_str(), work.version.as_str(), work.generation), ("w", "1", 3));
    // Large metadata is not kept either.
    assert!(kept.labels().is_empty() && kept.annotations().is_empty());
    let moved = mark(&object);
    assert_eq!(mark(&kept), moved, "nothing has changed");
    let (whole, told) = (weighs(&object), weighs(&kept));
    assert!(whole > 0 && (whole..whole + 1024).contains(&told), "{told} of {whole}");
    object.metadata.labels = None;
    assert_ne!(mark(&object), moved);
}

#[test]
fn what_fills_the_metadata_counts_and_that_we_hold_one_stays() {
    let mut watch = Watch::new(2000, 2000);
    let mut large = work("c", "w", 1);
    large.metadata.labels = Some((0..40).map(|number| (format!("l{number}"), "v".to_owned())).collect());
    assert_eq!(watch.told([Event::Apply(large)]), [""; 0]);
    let mut ending = work("c", "w", 1);
    ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let (mut ours, mut others) = (holding(), holding());
    others.manager = Some("work-agent".to_owned());
    let of = |entry: &_| {
        let mut object = ending.clone();
        object.metadata.managed_fields = Some(vec![Clone::clone(entry)]);
        prune(&mut object);
        is_held_by_us(&beyond(object))
    };
    assert!(of(&ours) && !of(&others));
    ours.fields_v1 = None;
    assert!(!of(&ours));
}
