use super::*;

fn links(per_server: usize) -> (Arc<Links>, Readiness) {
    let readiness = Readiness::default();
    (Links::new(per_server, &readiness), readiness)
}

fn admit(links: &Arc<Links>, keeper: u64, server: &str) -> Option<Usable> {
    links.admit(keeper, &server.into(), &Serving::default(), false)
}

#[test]
fn a_server_takes_so_many_and_a_stand_in_more() {
    let (links, _) = links(2);
    let one = admit(&links, 1, "a").unwrap();
    let _two = admit(&links, 2, "a").unwrap();
    assert!(admit(&links, 1, "a").is_none());
    let _stand_in = links.admit(1, &"a".into(), &Serving::default(), true).unwrap();
    drop(one);
    assert!(admit(&links, 1, "a").is_none(), "the stand-in counts");
    assert!(admit(&links, 1, "b").is_some());
}

#[test]
fn ready_while_there_is_a_link() {
    let (links, readiness) = links(1);
    assert_eq!(readiness.blocked_by(), [CONDITION]);
    let one = admit(&links, 1, "a").unwrap();
    let two = admit(&links, 1, "b").unwrap();
    drop(one);
    assert!(readiness.blocked_by().is_empty());
    drop(two);
    assert_eq!(readiness.blocked_by(), [CONDITION]);
    let _again = admit(&links, 1, "a").unwrap();
    assert!(readiness.blocked_by().is_empty());
}

#[test]
fn more_are_wanted_for_a_second_server_and_for_servers_with_few() {
    let (links, _) = links(2);
    let _a = [admit(&links, 1, "a").unwrap(), admit(&links, 1, "a").unwrap()];
    assert!(links.wants_more_through(1), "one server is too few");
    let b = admit(&links, 2, "b").unwrap();
    assert!(!links.wants_more_through(1), "what place 1 leads to has enough");
    assert!(links.wants_more_through(2));
    let found = links.summary();
    assert_eq!((found.links, found.servers), (3, 2));
    drop(b);
    assert!(links.wants_more_through(1));
}

#[test]
fn another_link_is_one_to_another_server_or_a_later_one() {
    let (links, _) = links(3);
    let leaving = admit(&links, 1, "a").unwrap();
    let _older = admit(&links, 1, "a").unwrap();
    drop(leaving);
    let mark = links.mark();
    assert!(!links.has_other("a", mark));
    let later = admit(&links, 1, "a").unwrap();
    assert!(links.has_other("a", mark));
    drop(later);
    let _other = admit(&links, 1, "b").unwrap();
    assert!(links.has_other("a", mark));
}

#[test]
fn numbers_are_free_again_when_the_last_holder_is_gone() {
    let (links, _) = links(1);
    let (zero, one) = (Arc::new(links.number().unwrap()), links.number().unwrap());
    let shared = Arc::clone(&zero);
    drop(zero);
    assert_eq!((one.get(), links.number().unwrap().get()), (1, 2), "the number is still in use");
    drop(shared);
    assert_eq!(links.number().unwrap().get(), 0);
}
