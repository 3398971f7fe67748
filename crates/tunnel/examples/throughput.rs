//! Measures a stream through two links: bytes and processor time per second, and the round trip of
//! an echo.
//!
//! client ─TCP─ bridge ─link─ splice ─link─ bridge ─TCP─ destination, all on loopback and in this
//! process, so that the time is that of all five.
//! `cargo run --release -p tunnel --example throughput [megabytes] [milliseconds]`; the second
//! number delays the second link, as a long path would (there and back together).

#![allow(clippy::print_stdout, reason = "its purpose")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tunnel::{Budget, Destination, Hop, Link, Serving, Settings, bridge, serve, splice};

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (connected, accepted) = (connected.expect("connected"), accepted.expect("accepted").0);
    for socket in [&connected, &accepted] {
        socket.set_nodelay(true).expect("a TCP socket");
    }
    (connected, accepted)
}

/// Passes on what it reads after `delay`, with any amount in flight.
async fn delayed(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut queue = VecDeque::new();
        while let Some(next) = receiver.recv().await {
            queue.push_back(next);
            while let Some((due, bytes)) = queue.pop_front() {
                tokio::time::sleep_until(due).await;
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    });
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if sender.send((Instant::now() + delay, buffer[..read].to_vec())).is_err() {
            return;
        }
    }
}

/// Two ends of a connection with a round trip of `rtt`.
async fn far_sockets(rtt: Duration) -> (TcpStream, TcpStream) {
    let (near, a) = sockets().await;
    if rtt.is_zero() {
        return (near, a);
    }
    let (b, far) = sockets().await;
    let ((a_read, a_write), (b_read, b_write)) = (a.into_split(), b.into_split());
    tokio::spawn(delayed(a_read, b_write, rtt / 2));
    tokio::spawn(delayed(b_read, a_write, rtt / 2));
    (near, far)
}

/// User and system time of this process.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
    Duration::from_millis(ticks * 10)
}

/// A client's socket that leads to a destination which echoes, or swallows and answers with a byte
/// at the end.
async fn client(link: &Link) -> TcpStream {
    let stream = link.open(&Destination::new("destination", 1).expect("a name"), None).await.expect("opened");
    let (near, far) = sockets().await;
    tokio::spawn(bridge::bridge(stream, far, Arc::default(), false));
    near
}

async fn destination(mut socket: TcpStream) {
    let mut buffer = vec![0; 256 * 1024];
    let Ok(1) = socket.read(&mut buffer[..1]).await else { return };
    let echo = buffer[0] == b'e';
    while let Ok(read @ 1..) = socket.read(&mut buffer).await {
        if echo && socket.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _ = socket.write_all(b".").await;
}

async fn links(rtt: Duration) -> Link {
    let settings = Settings::default();
    let (near, far) = far_sockets(rtt).await;
    let numbers = settings.clone();
    tokio::spawn(async move {
        let accept = |incoming: tunnel::Incoming| async move {
            let (near, far) = sockets().await;
            tokio::spawn(destination(far));
            let _ = bridge::bridge(incoming.accept().expect("open"), near, Arc::default(), true).await;
        };
        serve(far, &numbers, Serving::default(), accept).await
    });
    let agent = Link::start(near, &settings, Hop::Agent).await.expect("a link");
    let (near, far) = sockets().await;
    let (numbers, budget) = (settings.clone(), Budget::new(1 << 30));
    tokio::spawn(async move {
        let relay = |incoming: tunnel::Incoming| {
            let (agent, budget) = (agent.clone(), budget.clone());
            async move {
                let onward = agent.open(&incoming.destination, None).await.expect("opened");
                let _ = splice::splice(incoming.accept().expect("open"), onward, Arc::default(), &budget).await;
            }
        };
        serve(far, &numbers, Serving::default(), relay).await
    });
    Link::start(near, &settings, Hop::Server).await.expect("a link")
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
async fn bulk(link: &Link, megabytes: usize) {
    let mut socket = client(link).await;
    let piece = vec![7; 1_000_000];
    let (started, before) = (Instant::now(), processor());
    socket.write_all(b"s").await.expect("written");
    for _ in 0..megabytes {
        socket.write_all(&piece).await.expect("written");
    }
    socket.shutdown().await.expect("shut down");
    socket.read_exact(&mut [0]).await.expect("the answer");
    let (took, used) = (started.elapsed(), processor().saturating_sub(before));
    println!(
        "bulk: {megabytes} MB in {took:.2?}: {:.0} MB/s, {:.2} ms of processor per MB",
        megabytes as f64 / took.as_secs_f64(),
        used.as_secs_f64() * 1000.0 / megabytes as f64
    );
}

async fn echo(link: &Link, times: usize) {
    let mut socket = client(link).await;
    socket.write_all(b"e").await.expect("written");
    let mut round_trips = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        socket.write_all(&[1; 64]).await.expect("written");
        socket.read_exact(&mut [0; 64]).await.expect("the echo");
        round_trips.push(started.elapsed());
    }
    round_trips.sort();
    println!("echo: p50 {:.0?}, p99 {:.0?}", round_trips[times / 2], round_trips[times * 99 / 100]);
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let megabytes = arguments.next().unwrap_or(2000);
    let rtt = Duration::from_millis(arguments.next().unwrap_or(0) as u64);
    let link = links(rtt).await;
    echo(&link, if rtt.is_zero() { 10_000 } else { 20 }).await;
    bulk(&link, megabytes).await;
    bulk(&link, megabytes).await;
}
