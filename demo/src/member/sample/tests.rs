use std::collections::HashSet;

use super::*;
use crate::member::selector::Selection;

const ALL: [&Profile; 3] = [&BERLIN, &OSAKA, &LIMA];

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap()
}

#[test]
fn a_sample_is_the_same_each_time_and_no_two_share_a_uid() {
    let mut uids = HashSet::new();
    for profile in ALL {
        for kind in Kind::ALL {
            let (first, second) = (profile.populate(now()), profile.populate(now()));
            let all = Selection::all(kind, None);
            for (one, other) in first.list(&all).into_iter().zip(second.list(&all)) {
                assert_eq!(one.body, other.body);
                assert_eq!(one.field("metadata.uid").len(), 36);
                assert!(uids.insert(one.field("metadata.uid").to_owned()), "{}", one.key.name);
            }
        }
    }
}

#[test]
fn pods_live_where_the_cluster_says_they_do() {
    for profile in ALL {
        let model = profile.populate(now());
        let names = |kind| -> HashSet<String> {
            model.list(&Selection::all(kind, None)).iter().map(|object| object.key.name.clone()).collect()
        };
        let (namespaces, nodes) = (names(Kind::Namespace), names(Kind::Node));
        let mut addresses = HashSet::new();
        for pod in model.list(&Selection::all(Kind::Pod, None)) {
            assert!(namespaces.contains(&pod.key.namespace), "{:?}", pod.key);
            let (node, address) = (pod.field("spec.nodeName"), pod.field("status.podIP"));
            assert!(node.is_empty() || nodes.contains(node), "{:?}", pod.key);
            assert!(address.is_empty() || addresses.insert(address.to_owned()), "{address} twice");
        }
    }
}

#[test]
fn suffixes_look_like_kubernetes() {
    let name = suffix(&["a"], 9);
    assert_eq!(name.len(), 9);
    assert!(!name.contains(['a', 'e', 'i', 'o', 'u', '0', '1', '3']), "{name}");
    assert_ne!(name, suffix(&["b"], 9));
}

#[test]
fn the_lease_of_a_node_as_its_describe_reads_it() {
    let model = BERLIN.populate(now());
    insta::assert_json_snapshot!("lease", model.list(&Selection::all(Kind::Lease, Some(LEASES.into())))[0].body);
}

#[test]
fn a_finished_pod_as_its_describe_shows_it() {
    let model = BERLIN.populate(now());
    let selection = Selection::all(Kind::Pod, Some("shop".into())).narrow("app=import", "").unwrap();
    insta::assert_json_snapshot!("finished_pod", model.list(&selection)[0].body);
}
