//! Waits end when they should, and name what they awaited when they do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test]
async fn a_condition_that_comes_true_ends_the_wait() {
    let looks = AtomicUsize::new(0);
    eventually(WAIT, || looks.fetch_add(1, Ordering::Relaxed) == 7).await;
    assert_eq!(looks.load(Ordering::Relaxed), 8);
}

#[tokio::test]
async fn a_wait_in_vain_names_its_subject_and_its_caller() {
    let failure = tokio::spawn(within(Duration::from_millis(1), "a bus", std::future::pending::<()>()))
        .await
        .expect_err("it panics");
    let text = failure.into_panic().downcast::<String>().expect("a message");
    assert!(text.contains("a bus") && text.contains("wait/tests.rs"), "{text}");
}

#[tokio::test]
async fn a_signal_wakes_a_waiter_for_what_came_before_and_after_it_looked() {
    let (signal, value) = (Arc::new(Signal::new()), Arc::new(AtomicUsize::new(0)));
    let waiter = tokio::spawn({
        let (signal, value) = (signal.clone(), value.clone());
        async move { signal.until("three", || (value.load(Ordering::SeqCst) == 3).then_some(())).await }
    });
    for number in 1..=3 {
        tokio::task::yield_now().await;
        value.store(number, Ordering::SeqCst);
        signal.notify();
    }
    waiter.await.expect("woken");
}

#[tokio::test]
async fn an_open_gate_stays_open() {
    let gate = Gate::new();
    let waiter = tokio::spawn({
        let gate = gate.clone();
        async move { gate.passed().await }
    });
    gate.open();
    waiter.await.expect("let through");
    within(WAIT, "the open gate", gate.passed()).await;
}

#[tokio::test]
async fn a_free_port_refuses_connections() {
    let port = free_port().await;
    let error = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn one_run_in_time_is_enough_and_none_is_not() {
    let slow = Duration::from_secs(2);
    let mut took = [slow, Duration::ZERO].into_iter();
    timely(slow, "a bus", async || took.next().expect("two runs are enough")).await;
    let failure = tokio::spawn(timely(slow, "a bus", async move || slow)).await.expect_err("it panics");
    let text = failure.into_panic().downcast::<String>().expect("a message");
    assert!(text.contains("a bus: [2s, 2s, 2s], never less than 2s") && text.contains("wait/tests.rs"), "{text}");
}
