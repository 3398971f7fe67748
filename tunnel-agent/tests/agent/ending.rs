//! Draining, and ending at once.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tunnel::OpenError;

use crate::fixture::{Fixture, echo, echoes, open, ready, stop};

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_agent_takes_nothing_new_and_ends_with_its_last_stream() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &[&format!("--allow={address}")]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let mut stream = open(&link, &address.to_string()).await.unwrap();
    let stopping = tokio::spawn(stop(agent));
    server.linked(0).await;
    assert!(matches!(open(&link, &address.to_string()).await, Err(OpenError::NotSent(_))));
    echoes(&mut stream, b"goes on").await;
    assert!(!stopping.is_finished());
    tokio::io::AsyncWriteExt::shutdown(&mut stream).await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "a clean end");
    drop(stream);
    kit::wait::within(Duration::from_secs(5), "the agent's end", stopping).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_outlast_the_drain_are_reset() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &[&format!("--allow={address}"), "--drain-timeout=500ms"]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let mut stream = open(&link, &address.to_string()).await.unwrap();
    let started = Instant::now();
    stop(agent).await;
    assert!((500..10_000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    let error = kit::wait::within(kit::wait::WAIT, "a reset", stream.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_agent_ends_at_once() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let agent = fixture.agent(&[&server], &[]);
    ready(&agent);
    server.linked(2).await;
    let started = Instant::now();
    stop(agent).await;
    assert!(started.elapsed() < Duration::from_secs(10), "of thirty seconds: {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_agent_is_gone_like_one_that_crashed() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &[&format!("--allow={address}")]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let mut stream = open(&link, &address.to_string()).await.unwrap();
    echoes(&mut stream, b"there").await;
    drop(agent);
    let error = kit::wait::within(Duration::from_secs(5), "a reset", stream.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}
