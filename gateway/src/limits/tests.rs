use super::*;
use crate::hub::Collection;

fn limits(short: u32, long: u32) -> (Limits, Registry) {
    let mut registry = Registry::default();
    let budgets = Budgets { short, long };
    (Limits::new(Caps { cluster: budgets, user: budgets }, &mut registry), registry)
}

fn user(name: &str, groups: &[&str]) -> Arc<User> {
    let groups = groups.iter().map(ToString::to_string).collect();
    Arc::new(User { name: name.to_owned(), groups, ..User::default() })
}

fn name() -> ClusterName {
    ClusterName::parse("berlin").unwrap()
}

#[test]
fn users_are_counted_apart() {
    let (limits, _) = limits(2, 1);
    let alice = user("alice", &[]);
    let open = [(); 2].map(|()| limits.of_user(&alice, Kind::Short).expect("room"));
    let refused = limits.of_user(&alice, Kind::Short).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "too many requests in flight for user \"alice\" (limit 2, --max-requests-per-user); retry shortly"
    );
    let _other = limits.of_user(&user("bob", &[]), Kind::Short).expect("another user's room");
    let long = limits.of_user(&alice, Kind::Long).expect("another budget");
    let refused = limits.of_user(&alice, Kind::Long).unwrap_err();
    assert!(refused.to_string().contains("--max-long-requests-per-user"), "{refused}");
    drop(open);
    let _again = limits.of_user(&alice, Kind::Short).expect("room again");
    drop(long);
    limits.of_user(&alice, Kind::Long).expect("room again");
}

#[test]
fn the_service_accounts_of_a_namespace_are_counted_together() {
    let (limits, _) = limits(2, 1);
    let account = |namespace: &str, name: &str| user(&format!("system:serviceaccount:{namespace}:{name}"), &[]);
    let _open = ["a", "b"].map(|name| limits.of_user(&account("tenant", name), Kind::Short).expect("room"));
    let refused = limits.of_user(&account("tenant", "c"), Kind::Short).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "too many requests in flight for all ServiceAccounts of namespace \"tenant\" (limit 2, \
         --max-requests-per-user); retry shortly"
    );
    let _other = limits.of_user(&account("tenant-2", "a"), Kind::Short).expect("another namespace's room");
    // A lingering request counts for the namespace, too.
    let load = Arc::new(Load::default());
    let _left = [(); 2].map(|()| limits.lingers(&account("left", "a"), &load));
    assert!(limits.of_user(&account("left", "b"), Kind::Short).is_err());
}

#[test]
fn a_crowd_that_came_and_went_is_forgotten_and_who_is_there_is_not() {
    let (limits, _) = limits(1, 1);
    let alice = user("alice", &[]);
    let _open = limits.of_user(&alice, Kind::Short).expect("room");
    for number in 0..100_000 {
        limits.of_user(&user(&format!("user-{number}"), &[]), Kind::Short).expect("room");
        assert!(limits.of_user(&alice, Kind::Short).is_err(), "still counted after {number} others");
    }
    assert!(limits.users.known() < 10_000, "{}", limits.users.known());
}

#[test]
fn of_those_who_come_at_once_as_many_are_let_in_as_there_is_room() {
    let (limits, _) = limits(4, 1);
    let together = std::sync::Barrier::new(8);
    let come = || {
        together.wait();
        limits.of_user(&user("alice", &[]), Kind::Short)
    };
    let came: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(came.iter().filter(|slot| slot.is_ok()).count(), 4);
    drop(came);
    limits.of_user(&user("alice", &[]), Kind::Short).expect("room again");
}

#[test]
fn clusters_are_counted_apart() {
    let (limits, registry) = limits(1, 1);
    let (load, other, alice) = (Arc::new(Load::default()), Arc::new(Load::default()), user("alice", &[]));
    let open = limits.of_cluster(&name(), &load, &alice, Kind::Short).expect("room");
    let refused = limits.of_cluster(&name(), &load, &alice, Kind::Short).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "too many requests in flight for cluster berlin (limit 1, --max-requests-per-cluster); retry shortly"
    );
    let _other = limits.of_cluster(&name(), &other, &alice, Kind::Short).expect("another cluster's room");
    let _long = limits.of_cluster(&name(), &load, &alice, Kind::Long).expect("another budget");
    drop(open);
    let _again = limits.of_cluster(&name(), &load, &alice, Kind::Short).expect("room again");
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("into a String");
    assert!(text.contains("cluster_gateway_requests_rejected_total{reason=\"cluster\"} 1"), "{text}");
    assert!(text.contains("cluster_gateway_requests_rejected_total{reason=\"user_long\"} 0"), "{text}");
}

#[test]
fn what_the_hub_is_not_asked_counts_by_the_limit() {
    let (limits, registry) = limits(1, 1);
    let count = limits.count_of_hub();
    for (verb, cause) in [
        (Verb::List, Cause::Busy),
        (Verb::Watch, Cause::Busy),
        (Verb::Watch, Cause::TooManyWatches { most: 128 }),
        (Verb::Watch, Cause::TooManyWatches { most: 128 }),
    ] {
        count(&HubFailure { verb, collection: Collection::Secrets, cause });
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("into a String");
    for (reason, count) in [("hub_requests", 1), ("watches", 1), ("watches_user", 2), ("health_reports", 0)] {
        let line = format!("cluster_gateway_requests_rejected_total{{reason=\"{reason}\"}} {count}");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn masters_are_neither_turned_away_nor_counted() {
    let (limits, _) = limits(1, 1);
    let (load, master) = (Arc::new(Load::default()), user("root", &["system:masters"]));
    for _ in 0..3 {
        assert!(limits.of_user(&master, Kind::Short).expect("exempt").is_none());
        assert!(limits.of_cluster(&name(), &load, &master, Kind::Short).expect("exempt").is_none());
    }
    let _open = limits.of_cluster(&name(), &load, &user("alice", &[]), Kind::Short).expect("room");
}

#[test]
fn zero_is_no_limit() {
    let (limits, _) = limits(0, 0);
    let alice = user("alice", &[]);
    assert!(limits.of_user(&alice, Kind::Long).expect("no limit").is_none());
}

#[test]
fn what_a_caller_has_left_counts_until_it_is_over() {
    let (limits, _) = limits(2, 1);
    let (load, alice) = (Arc::new(Load::default()), user("alice", &[]));
    let left = [(); 2].map(|()| limits.lingers(&alice, &load));
    assert!(limits.of_user(&alice, Kind::Short).is_err());
    assert!(limits.of_cluster(&name(), &load, &alice, Kind::Short).is_err());
    let _long = limits.of_user(&alice, Kind::Long).expect("a watch that begins is another matter");
    drop(left);
    limits.of_user(&alice, Kind::Short).expect("room again");
    let master = user("root", &["system:masters"]);
    assert!(limits.lingers(&master, &load).iter().all(Option::is_none));
}

#[test]
fn a_cluster_that_is_registered_anew_goes_on_counting_what_its_former_self_has_open() {
    let (limits, _) = limits(1, 1);
    let (loads, alice) = (Loads::default(), user("alice", &[]));
    let open = limits.of_cluster(&name(), &loads.of("berlin"), &alice, Kind::Short).expect("room");
    for number in 0..100_000 {
        loads.of(&format!("cluster-{number}"));
    }
    assert!(limits.of_cluster(&name(), &loads.of("berlin"), &alice, Kind::Short).is_err());
    drop(open);
    limits.of_cluster(&name(), &loads.of("berlin"), &alice, Kind::Short).expect("room again");
}
