use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;

use kit::wait::{becomes, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tunnel::register::Registration;
use tunnel::{Incoming, Link, LinkError, Serving, Settings};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// How an agent handles a stream.
#[derive(Clone)]
enum Manner {
    Accept,
    Refuse(Reason),
    /// Never answers.
    Hang,
}

/// An agent's link, with its other end.
struct Agent {
    linked: Linked,
    serving: Serving,
    /// Number of streams that arrived.
    seen: Arc<AtomicUsize>,
    cancelled: Arc<Notify>,
}

fn name(text: &str) -> ClusterName {
    ClusterName::parse(text).unwrap()
}

fn registration(cluster: &str, agent: &str, link: u16) -> Registration {
    Registration { cluster: name(cluster), agent: agent.to_owned(), link, version: "1".to_owned() }
}

fn somewhere() -> Destination {
    Destination::new("kubernetes.default.svc", 443).unwrap()
}

fn registry(limits: Limits) -> Registry {
    Registry::new(limits, Metrics::default())
}

async fn link(registry: &Registry, registration: Registration, user: &str, manner: Manner) -> Agent {
    let (server, agent) = tokio::io::duplex(64 * 1024);
    let (serving, seen, cancelled) = (Serving::default(), Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let (count, cancels) = (Arc::clone(&seen), Arc::clone(&cancelled));
    let handler = move |incoming| {
        count.fetch_add(1, Ordering::Relaxed);
        behave(incoming, manner.clone(), Arc::clone(&cancels))
    };
    let control = serving.clone();
    tokio::spawn(async move { tunnel::serve(agent, &Settings::default(), control, handler).await });
    let link = Link::start(server, &Settings::default(), Hop::Agent).await.unwrap();
    let credential = Credential(user.into());
    let permit = registry.reserve(&registration, &credential).unwrap();
    let named = Named::new(&registration, SocketAddr::from(([192, 0, 2, 1], 1)), credential);
    Agent { linked: registry.add(permit, named, link), serving, seen, cancelled }
}

async fn behave(mut incoming: Incoming, manner: Manner, cancelled: Arc<Notify>) {
    match manner {
        Manner::Accept => {
            let mut stream = incoming.accept().unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            let _ = stream.write_all(&rest).await;
            let _ = stream.shutdown().await;
        }
        Manner::Refuse(reason) => incoming.refuse(&Refusal::new(Hop::Agent, reason, "no")),
        Manner::Hang => {
            incoming.cancelled().await;
            cancelled.notify_one();
        }
    }
}

async fn open(registry: &Registry, cluster: &str) -> Result<(Stream, Arc<Gauge>), Refusal> {
    within(SOON, "an answer", registry.open(&name(cluster), &somewhere(), Duration::from_secs(5))).await
}

fn reason(outcome: Result<(Stream, Arc<Gauge>), Refusal>) -> (Hop, Reason) {
    let refusal = outcome.expect_err("refused");
    (refusal.hop, refusal.reason)
}

#[tokio::test]
async fn streams_are_spread_over_the_links_and_counted_until_their_gauges_are_gone() {
    let registry = registry(Limits::default());
    let mut agents = Vec::new();
    for number in 0..4 {
        agents.push(link(&registry, registration("east", &format!("a{number}"), 0), "u", Manner::Accept).await);
    }
    let mut streams = Vec::new();
    for _ in 0..40 {
        streams.push(open(&registry, "east").await.unwrap());
    }
    let spread: Vec<_> = agents.iter().map(|agent| agent.linked.streams()).collect();
    assert_eq!(spread, [10; 4]);
    assert_eq!(registry.streams(), 40);
    // One link is busier than the others, so the next streams use those until all are equal.
    streams.truncate(37);
    for _ in 0..3 {
        streams.push(open(&registry, "east").await.unwrap());
    }
    let spread: Vec<_> = agents.iter().map(|agent| agent.linked.streams()).collect();
    assert_eq!(spread, [10; 4]);
    drop(streams);
    assert_eq!(registry.streams(), 0);
    within(SOON, "idle", registry.until_idle()).await;
}

#[tokio::test]
async fn equal_links_take_turns() {
    let registry = registry(Limits::default());
    let mut agents = Vec::new();
    for number in 0..3 {
        agents.push(link(&registry, registration("east", &format!("a{number}"), 0), "u", Manner::Accept).await);
    }
    // One stream at a time, so that all links stay equal.
    for _ in 0..30 {
        drop(open(&registry, "east").await.unwrap());
    }
    let seen: Vec<_> = agents.iter().map(|agent| agent.seen.load(Ordering::Relaxed)).collect();
    assert_eq!(seen, [10; 3]);
}

#[tokio::test]
async fn what_was_not_dialled_is_tried_on_another_link_and_what_was_is_not() {
    for (first, tried, expected) in [
        (Reason::Draining, 2, None),
        (Reason::Limit, 2, None),
        (Reason::Unreachable, 1, Some(Reason::Unreachable)),
        (Reason::Forbidden, 1, Some(Reason::Forbidden)),
        (Reason::DialTimeout, 1, Some(Reason::DialTimeout)),
    ] {
        let registry = registry(Limits::default());
        let one = link(&registry, registration("east", "one", 0), "u", Manner::Refuse(first)).await;
        let other = link(&registry, registration("east", "other", 0), "u", Manner::Accept).await;
        // The link with fewer streams comes first.
        let busy = Counted::begin(&registry.0, &registry.held(|held| held.id == other.linked.id())[0], &somewhere());
        let outcome = open(&registry, "east").await;
        assert_eq!(outcome.as_ref().err().map(|refusal| refusal.reason), expected, "{first:?}");
        let asked = one.seen.load(Ordering::Relaxed) + other.seen.load(Ordering::Relaxed);
        assert_eq!(asked, tried, "{first:?}");
        drop((busy, outcome));
        assert_eq!(registry.streams(), 0, "{first:?}");
    }
}

/// No bytes were sent to the destination yet, so an agent's crash need not fail the stream while
/// there is another link.
#[tokio::test]
async fn a_dial_whose_link_is_lost_goes_on_over_another() {
    let registry = registry(Limits::default());
    let crashing = link(&registry, registration("east", "a1", 0), "u", Manner::Hang).await;
    let opening = async {
        becomes(SOON, "a dial", async || crashing.seen.load(Ordering::Relaxed) == 1).await;
        let other = link(&registry, registration("east", "a2", 0), "u", Manner::Accept).await;
        crashing.serving.close();
        other
    };
    let (opened, other) = tokio::join!(open(&registry, "east"), opening);
    opened.expect("opened by the other");
    assert_eq!(other.seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn all_links_full_is_told_as_that() {
    let registry = registry(Limits::default());
    let _one = link(&registry, registration("east", "one", 0), "u", Manner::Refuse(Reason::Limit)).await;
    let _other = link(&registry, registration("east", "other", 0), "u", Manner::Refuse(Reason::Limit)).await;
    assert_eq!(reason(open(&registry, "east").await), (Hop::Agent, Reason::Limit));
}

#[tokio::test]
async fn unknown_is_told_from_not_linked_now() {
    let registry = registry(Limits::default());
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::UnknownCluster));
    let agent = link(&registry, registration("east", "one", 0), "u", Manner::Accept).await;
    assert!(open(&registry, "east").await.is_ok());
    assert_eq!(registry.linked(), [name("east")]);
    agent.serving.close();
    agent.linked.link().ended().await;
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::NoLink), "still listed, ended");
    drop(agent);
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::NoLink), "seen lately");
    assert!(registry.linked().is_empty() && registry.list().is_empty());
    assert_eq!(reason(open(&registry, "west").await), (Hop::Server, Reason::UnknownCluster));
}

#[tokio::test]
async fn a_link_that_says_goaway_gets_no_new_streams_and_keeps_its_old() {
    let registry = registry(Limits::default());
    let leaving = link(&registry, registration("east", "leaving", 0), "u", Manner::Accept).await;
    let (mut stream, _gauge) = open(&registry, "east").await.unwrap();
    let staying = link(&registry, registration("east", "staying", 0), "u", Manner::Accept).await;
    leaving.serving.drain();
    within(SOON, "the GOAWAY", leaving.linked.link().leaving()).await;
    for _ in 0..4 {
        open(&registry, "east").await.unwrap();
    }
    assert_eq!((leaving.seen.load(Ordering::Relaxed), staying.seen.load(Ordering::Relaxed)), (1, 4));
    stream.write_all(b"still here").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut echoed = String::new();
    within(SOON, "the echo", stream.read_to_string(&mut echoed)).await.unwrap();
    assert_eq!(echoed, "still here");
}

#[tokio::test]
async fn a_newer_link_of_the_same_number_and_credential_replaces_the_older() {
    let registry = registry(Limits { links_per_agent: 1, ..Limits::default() });
    let older = link(&registry, registration("east", "one", 7), "u", Manner::Accept).await;
    let (mut stream, _gauge) = open(&registry, "east").await.unwrap();
    let other = Credential("somebody else".into());
    let full = registry.reserve(&registration("east", "one", 7), &other).unwrap_err();
    assert_eq!(full, permits::Full::Agent(1), "another credential replaces nothing");
    let newer = link(&registry, registration("east", "one", 7), "u", Manner::Accept).await;
    within(SOON, "being asked to leave", older.serving.asked_to_leave()).await;
    assert!(open(&registry, "east").await.is_ok());
    assert_eq!(newer.seen.load(Ordering::Relaxed), 1);
    stream.write_all(b"x").await.unwrap();
    assert_eq!(older.linked.streams(), 1, "the older finishes what it has");
}

#[tokio::test]
async fn places_are_limited_at_every_level_and_given_back() {
    let limits = Limits { links_per_agent: 2, links_per_cluster: 3, links: 4, ..Limits::default() };
    let registry = registry(limits);
    let user = Credential("u".into());
    let take = |cluster: &str, agent: &str| registry.reserve(&registration(cluster, agent, 0), &user);
    let mut permits = vec![take("east", "a").unwrap(), take("east", "a").unwrap()];
    assert_eq!(take("east", "a").unwrap_err(), permits::Full::Agent(2));
    permits.push(take("east", "b").unwrap());
    assert_eq!(take("east", "c").unwrap_err(), permits::Full::Cluster(3));
    permits.push(take("west", "a").unwrap());
    assert_eq!(take("north", "a").unwrap_err(), permits::Full::All(4));
    drop(permits);
    assert!(take("east", "a").is_ok());
}

#[tokio::test]
async fn streams_and_dials_are_limited() {
    let limits = Limits { streams_per_cluster: 2, streams: 3, ..Limits::default() };
    let registry = registry(limits);
    let _agents = [
        link(&registry, registration("east", "a", 0), "u", Manner::Accept).await,
        link(&registry, registration("west", "a", 0), "u", Manner::Accept).await,
    ];
    let mut streams = vec![open(&registry, "east").await.unwrap(), open(&registry, "east").await.unwrap()];
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::Limit));
    streams.push(open(&registry, "west").await.unwrap());
    assert_eq!(reason(open(&registry, "west").await), (Hop::Server, Reason::Limit));
    streams.clear();
    assert!(open(&registry, "east").await.is_ok());

    let registry = Registry::new(Limits { dials_per_cluster: 1, ..Limits::default() }, Metrics::default());
    let hanging = link(&registry, registration("east", "a", 0), "u", Manner::Hang).await;
    let (first, to) = (name("east"), somewhere());
    let mut dial = Box::pin(registry.open(&first, &to, SOON));
    let dialled = async { becomes(SOON, "a dial", async || hanging.seen.load(Ordering::Relaxed) == 1).await };
    tokio::select! {
        _ = &mut dial => panic!("nobody answers"),
        () = dialled => {}
    }
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::Limit));
    drop(dial);
    within(SOON, "the cancel", hanging.cancelled.notified()).await;
    assert_eq!((registry.streams(), registry.list()[0].dials), (0, 0));
}

#[tokio::test]
async fn streams_of_links_that_went_count_for_those_that_come() {
    let registry = registry(Limits { streams_per_cluster: 1, ..Limits::default() });
    let former = link(&registry, registration("east", "a", 0), "u", Manner::Accept).await;
    let going_on = open(&registry, "east").await.unwrap();
    drop(former.linked);
    assert_eq!(registry.linked(), []);
    let next = link(&registry, registration("east", "b", 0), "u", Manner::Accept).await;
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::Limit));
    drop(going_on);
    let last = open(&registry, "east").await.unwrap();
    drop((last, next.linked));
    assert!(registry.0.former.lock().is_empty(), "nothing is remembered of what has ended");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_is_named_within_the_dial_timeout() {
    let registry = registry(Limits::default());
    let agent = link(&registry, registration("east", "a", 0), "u", Manner::Hang).await;
    let refusal = registry.open(&name("east"), &somewhere(), Duration::from_secs(3)).await.err().unwrap();
    assert_eq!((refusal.hop, refusal.reason), (Hop::Server, Reason::AgentTimeout));
    assert!(refusal.message.contains("\"east\"") && refusal.message.contains("3s"), "{}", refusal.message);
    agent.cancelled.notified().await;
}

#[tokio::test]
async fn an_operator_ends_a_stream_and_a_link_by_their_numbers() {
    let registry = registry(Limits::default());
    let agent = link(&registry, registration("east", "a", 3), "u", Manner::Accept).await;
    let (opened, gauge) = open(&registry, "east").await.unwrap();
    gauge.forth.store(17, Ordering::Relaxed);
    let listing = registry.list();
    let listed = &listing[0].agents[0].links[0];
    assert_eq!((listing[0].cluster.as_str(), listed.number, listed.id), ("east", 3, agent.linked.id()));
    let stream = &listed.streams[0];
    assert_eq!((stream.destination.as_str(), stream.bytes_forth), ("kubernetes.default.svc:443", 17));
    assert!(Arc::ptr_eq(&registry.stream(stream.id).unwrap(), &gauge));
    assert!(registry.stream(listed.id).is_err(), "a link's number is no stream's");
    registry.drain_link(listed.id).await.unwrap();
    within(SOON, "being asked to leave", agent.serving.asked_to_leave()).await;
    registry.close_link(listed.id).unwrap();
    assert!(matches!(within(SOON, "the end", agent.linked.link().ended()).await, LinkError::Closed));
    let (id, stream) = (listed.id, stream.id);
    drop((agent, gauge, opened));
    assert!(registry.close_link(id).is_err() && registry.stream(stream).is_err());
}

#[tokio::test]
async fn a_server_that_leaves_opens_nothing_and_says_so() {
    let registry = registry(Limits::default());
    let agent = link(&registry, registration("east", "a", 0), "u", Manner::Accept).await;
    registry.start_draining();
    registry.leave_all().await;
    agent.serving.asked_to_leave().await;
    assert_eq!(reason(open(&registry, "east").await), (Hop::Server, Reason::Draining));
}
