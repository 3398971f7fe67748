//! `port-forward`, over WebSocket and over SPDY: 4 to 100 MB in both directions at the same time,
//! and the behaviour when a side is closed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use aws_lc_rs::digest::{self, Digest, SHA256};
use hub_tests::kubectl::{Invocation, Kubectl, Running};
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::compare::Ways;
use crate::fixture::Fixture;
use crate::streams::{self, Protocol};

/// The services of the test kubelet on each port (`tools/kubelet/main.go`).
const ECHO: u16 = 7;
const DISCARD: u16 = 9;
const CHARGEN: u16 = 19;

const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    let mut trials = Vec::new();
    for protocol in [Protocol::WebSocket, Protocol::Spdy] {
        for route in ways.proxied() {
            let name = |what: &str| format!("forward::over {protocol:?} via {}: {what}", route.name());
            // A tunnel carries bytes, so the protocol makes no difference there. Each protocol is
            // tried at length on one route, and each route with one protocol.
            let (volume, long) = match (route, protocol) {
                (Route::Tunnel, Protocol::Spdy) => (4_000_000, "4 MB there and back"),
                (Route::Hub, Protocol::Spdy) | (Route::Gateway, Protocol::WebSocket) => {
                    (20_000_000, "20 MB there and back")
                }
                _ => (100_000_000, "100 MB there and back"),
            };
            // Both kinds of tunnels share nine tenths of the code.
            if route != Route::Embedded {
                trials.push(ways.test(fixture, &name(long), move |testbed| echo(testbed, route, protocol, volume)));
            }
            trials.push(ways.test(fixture, &name("one way"), move |testbed| one_way(testbed, route, protocol)));
        }
    }
    trials
}

/// A running `kubectl port-forward` and the local port it listens on.
fn forward(testbed: &Testbed, route: Route, protocol: Protocol, port: u16) -> Result<(Running, u16)> {
    streams::pod(testbed)?;
    start(protocol.apply(testbed.kubectl(route).args(words(port))))
}

fn words(port: u16) -> [String; 6] {
    ["port-forward", "shell", "-n", "streams", "--address=127.0.0.1", &format!(":{port}")].map(str::to_owned)
}

fn start(invocation: Invocation) -> Result<(Running, u16)> {
    let mut running = invocation.start()?;
    let line = running.next_line(LIMIT)?; // Forwarding from 127.0.0.1:34567 -> 7
    let local = line.split(" -> ").next().and_then(|text| text.rsplit(':').next()).and_then(|text| text.parse().ok());
    Ok((running, local.with_context(|| format!("no port in {line:?}"))?))
}

/// Echoes a few bytes, with any kubectl; `streams::pod` must exist.
pub(crate) fn small_echo(kubectl: &Kubectl) -> Result<()> {
    let (_running, port) = start(kubectl.args(words(ECHO)))?;
    let mut stream = connect(port)?;
    stream.write_all(b"there and back")?;
    let mut answer = [0; 14];
    stream.read_exact(&mut answer)?;
    ensure!(&answer == b"there and back", "{answer:?}");
    Ok(())
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

fn echo(testbed: &Testbed, route: Route, protocol: Protocol, volume: usize) -> Result<()> {
    let (_running, port) = forward(testbed, route, protocol, ECHO)?;
    let mut stream = connect(port)?;
    let mut sender = stream.try_clone()?;
    let sending = std::thread::spawn(move || -> Result<Digest> {
        let mut hash = digest::Context::new(&SHA256);
        for number in 0_u32.. {
            let chunk = chunk(number);
            let start = usize::try_from(number)? * chunk.len();
            let Some(left) = volume.checked_sub(start).filter(|left| *left > 0) else { break };
            let part = &chunk[..left.min(chunk.len())];
            sender.write_all(part)?;
            hash.update(part);
        }
        Ok(hash.finish())
    });
    let mut hash = digest::Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    while received < volume {
        let count = stream.read(&mut buffer).with_context(|| format!("after {received} bytes"))?;
        ensure!(count > 0, "closed after {received} bytes");
        hash.update(&buffer[..count]);
        received += count;
    }
    let sent = sending.join().expect("no panic")?;
    ensure!(received == volume && hash.finish().as_ref() == sent.as_ref(), "other bytes came back than were sent");
    Ok(())
}

/// 64 KiB that differ for each number, so that a lost or doubled part is noticed.
fn chunk(number: u32) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(1 << 16);
    for row in 0..=u8::MAX {
        chunk.extend(number.to_le_bytes().map(|byte| byte ^ row).repeat(64));
    }
    chunk
}

/// The peer's answer arrives after our half of the connection is closed, and its close is seen.
fn one_way(testbed: &Testbed, route: Route, protocol: Protocol) -> Result<()> {
    let (_running, port) = forward(testbed, route, protocol, DISCARD)?;
    let mut stream = connect(port)?;
    stream.write_all(&vec![7; 300_000])?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("300000 "), "the peer got {answer:?}");

    let (_running, port) = forward(testbed, route, protocol, CHARGEN)?;
    let mut stream = BufReader::new(connect(port)?);
    stream.get_mut().write_all(b"5000000\n")?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let row: Vec<u8> = (0..=250).collect();
    let is_as_sent = text.chunks(row.len()).all(|part| *part == row[..part.len()]);
    ensure!(text.len() == 5_000_000 && is_as_sent, "{} bytes, not as sent", text.len());
    ensure!(stream.fill_buf()?.is_empty(), "more than was asked for");
    Ok(())
}
