use std::sync::Arc;
use std::time::Duration;

use api::side::Side;
use api::traffic::{RecentFailure, Traffic};
use fleet::{Failure, Kind};
use tokio::time::Instant;

use super::*;
use crate::findings::Mark;
use crate::walk::{End, Step};

const EVIL: &str = "</p><script>alert(1)</script>\"'";

fn step(hop: Hop, told: &str) -> Step {
    Step { mark: Mark::Good, hop, took: Some(Duration::from_micros(8_400)), told: told.to_owned() }
}

fn snapshot(reached: &str) -> Snapshot {
    let cells = Cells {
        status: "Ready",
        reached: reached.into(),
        is_tunnelled: reached == "tunnel",
        alias: EVIL.into(),
        endpoint: EVIL.into(),
        ..Cells::default()
    };
    Snapshot { asked: true, clusters: [("oslo".to_owned(), Arc::new(cells))].into(), ..Snapshot::default() }
}

fn parts(snapshot: &Snapshot, inspection: &Inspection, history: &History) -> Parts {
    let name = ClusterName::parse("oslo").unwrap();
    ClusterDetails { name: &name, snapshot, inspection: Some(inspection), history }.parts()
}

#[test]
fn a_way_that_ends_says_where_why_and_what_to_do() {
    let message = "cluster oslo is unreachable: no tunnel-agent of the cluster is linked to the tunnel-server";
    let failure = Failure { side: Some(Side::Tunnel), kind: Kind::Answered(503), ..Failure::own(message) };
    let seen = Inspection {
        steps: vec![step(Hop::Hub, "Kubernetes v1.35.4"), step(Hop::TunnelServer, "passed")],
        end: Some(End { hop: Hop::TunnelAgent, failure }),
        traffic: Ok(Traffic::default()),
        links: Some(Ok([("a", Count::Of(0)), ("b", Count::Together), ("c", Count::Unanswered)]
            .map(|(server, count)| Links { server: server.into(), count })
            .into())),
    };
    let parts = parts(&snapshot("tunnel"), &seen, &History::default());
    let way = parts["way"].as_str();
    assert!(
        way.contains("8.4 ms") && way.contains("<li class=\"bad\"><b><i class=\"dot bad\"></i>tunnel-agent"),
        "{way}"
    );
    assert!(way.contains("no tunnel-agent of the cluster is linked") && way.contains("class=\"remedy\""), "{way}");
    assert_eq!(way.matches("not reached").count(), 2, "member and credential: {way}");
    assert!(parts["state"].as_str().contains("fails at the tunnel-agent"), "{:?}", parts["state"]);
    let links = "<dd>0 at a, not counted separately at b, c does not answer</dd>";
    assert!(parts["facts"].as_str().contains(links), "{:?}", parts["facts"]);
}

#[tokio::test(start_paused = true)]
async fn what_others_say_is_no_markup() {
    let text = || EVIL.to_owned();
    let failed = RecentFailure {
        user: text(),
        verb: text(),
        resource: text(),
        side: text(),
        text: text(),
        suppressed: 3,
        ..RecentFailure::default()
    };
    let traffic = Traffic { replica: text(), recent_failures: vec![failed], ..Traffic::default() };
    let mut history = History::default();
    history.add(traffic.clone(), Instant::now(), Duration::from_secs(5));
    let links = Some(Err(Trouble::failed(EVIL, EVIL)));
    let end = Some(End { hop: Hop::Member, failure: Failure::own(EVIL) });
    let seen = Inspection { steps: vec![step(Hop::Hub, EVIL)], end, traffic: Err(Trouble::failed(EVIL, EVIL)), links };
    let parts = parts(&snapshot(EVIL), &seen, &history);
    for (id, part) in &parts {
        assert!(!part.as_str().contains("<script>"), "{id}: {part:?}");
    }
    for id in ["state", "notices", "way", "traffic", "facts", "failures"] {
        assert!(parts[id].as_str().contains("&lt;script&gt;"), "{id}: {:?}", parts[id]);
    }
    let name = ClusterName::parse("oslo").unwrap();
    let page = page(&name, Server { hub: EVIL, seal: "seal" }, &parts);
    assert!(!page.contains("<script>") && page.contains("data-events=\"oslo/events\" data-seal=\"seal\""), "{page}");
    assert!(page.contains("aria-labelledby=\"h-way\"") && page.contains("id=\"h-way\""), "{page}");
}

#[test]
fn who_may_not_see_the_traffic_sees_the_rest() {
    let untold =
        Trouble::failed("clustergateways \"oslo\" is forbidden", "ask for the verb get on clustergateways/traffic");
    let seen = Inspection { steps: vec![step(Hop::Hub, "fine")], end: None, traffic: Err(untold), links: None };
    let parts = parts(&snapshot("directly"), &seen, &History::default());
    assert!(
        parts["notices"].as_str().contains("Traffic and failures are not shown: clustergateways"),
        "{:?}",
        parts["notices"]
    );
    assert!(parts["notices"].as_str().contains("ask for the verb get"), "{:?}", parts["notices"]);
    assert!(parts["way"].as_str().contains("fine") && parts["traffic"].as_str().contains("No count yet."), "{parts:?}");
}
