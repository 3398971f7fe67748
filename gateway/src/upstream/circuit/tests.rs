use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::time::advance;

use super::*;
use crate::metrics::{ClusterMetrics, Metrics};

const REFUSED: &str = "dial tcp 10.0.0.1:6443: connect: refused";

struct Tested {
    circuit: Circuit,
    registry: Registry,
    /// Held, because its drop removes the series.
    cluster: Arc<ClusterMetrics>,
}

fn tested(limit: u32) -> Tested {
    let mut registry = Registry::default();
    let cluster = Metrics::register(&mut registry).for_cluster("c1".into(), None);
    Tested { circuit: Circuit::new(limit, cluster.circuit()), registry, cluster }
}

impl Tested {
    fn fail(&self) {
        self.circuit.attempt().expect("a dial is let through").failed(&REFUSED);
    }

    fn fail_times(&self, times: u32) {
        (0..times).for_each(|_| self.fail());
    }

    fn refusal(&self) -> String {
        self.circuit.attempt().err().expect("the circuit is open").to_string()
    }

    fn is_open(&self) -> bool {
        self.circuit.attempt().is_err()
    }

    fn gauge(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.starts_with("cluster_gateway_upstream_circuit_open{")).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn opens_after_failures_in_a_row_and_says_why_and_until_when() {
    let tested = tested(5);
    tested.fail_times(4);
    tested.circuit.attempt().unwrap().succeeded();
    tested.fail_times(4);
    assert_eq!((tested.is_open(), tested.gauge().as_str()), (false, "0"));
    tested.fail();
    let refusal = tested.refusal();
    assert!(refusal.starts_with(REFUSED) && refusal.contains("last 5 attempts"), "{refusal}");
    assert!(refusal.contains("the next attempt is in 0.") || refusal.contains("in 1.0s"), "{refusal}");
    assert_eq!(tested.gauge(), "1");
}

#[tokio::test(start_paused = true)]
async fn one_dial_goes_through_after_the_pause_and_its_success_closes_it() {
    let tested = tested(1);
    tested.fail();
    advance((PAUSES.first / 2).saturating_sub(Duration::from_millis(1))).await;
    assert!(tested.is_open(), "the pause is at least half its length");
    advance(PAUSES.first / 2 + Duration::from_millis(1)).await;
    let probe = tested.circuit.attempt().expect("and at most its length");
    assert!(tested.refusal().contains("the next attempt is in progress"));
    probe.succeeded();
    assert_eq!((tested.is_open(), tested.gauge().as_str()), (false, "0"));
}

#[tokio::test(start_paused = true)]
async fn each_failure_of_the_one_dial_doubles_the_pause_up_to_a_limit() {
    let tested = tested(1);
    tested.fail();
    for seconds in [2, 4, 8, 16, 30, 30] {
        advance(PAUSES.longest).await;
        tested.fail();
        let length = Duration::from_secs(seconds);
        advance((length / 2).saturating_sub(Duration::from_millis(1))).await;
        assert!(tested.is_open(), "shorter than half of {length:?}");
        advance(length / 2 + Duration::from_millis(1)).await;
        assert!(!tested.is_open(), "longer than {length:?}");
    }
    assert_eq!(tested.gauge(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_dial_given_up_by_its_caller_leaves_its_place_to_the_next() {
    let tested = tested(1);
    tested.fail();
    advance(PAUSES.first).await;
    let probe = tested.circuit.attempt().unwrap();
    assert!(tested.is_open());
    drop(probe);
    assert!(!tested.is_open());
}

#[tokio::test(start_paused = true)]
async fn dials_from_before_it_opened_do_not_lengthen_the_pause_but_may_close_it() {
    let tested = tested(2);
    let [first, second, late, lucky] = [(); 4].map(|()| tested.circuit.attempt().unwrap());
    first.failed(&REFUSED);
    second.failed(&REFUSED);
    late.failed(&"another error");
    assert!(tested.refusal().starts_with(REFUSED));
    lucky.succeeded();
    assert!(!tested.is_open());
}

#[tokio::test(start_paused = true)]
async fn it_can_be_turned_off() {
    let tested = tested(0);
    tested.fail_times(100);
    assert!(!tested.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_was_replaced_no_longer_speaks_for_its_cluster() {
    let mut tested = tested(1);
    let new = Circuit::new(1, tested.cluster.circuit());
    let old = std::mem::replace(&mut tested.circuit, new);
    old.attempt().unwrap().failed(&REFUSED);
    assert_eq!(tested.gauge(), "0");
    tested.fail();
    assert_eq!(tested.gauge(), "1");
}
