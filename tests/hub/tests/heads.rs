//! A head that one user writes does not end the streams of others. API servers answer a head that
//! they cannot accept by closing its connection, which all users share on the way to a member and
//! on the way from the hub.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use http_body_util::BodyExt as _;
use hub_tests::prelude::*;
use kit::pki::{ALPN_H2, Trust};
use libtest_mimic::Trial;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

/// Watches of the victim, and attacks: enough of each that every core of the gateway has some.
const WATCHES: usize = 6;
const ATTACKS: usize = 12;
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials =
        vec![test(fixture, "heads::a name that the member takes for malformed ends nobody's watch", |testbed| {
            beside(testbed, Route::Gateway, "malformed", malformed_name)
        })];
    trials.push(test(
        fixture,
        "heads::a name longer than libraries take, through the hub, ends nobody's watch",
        |testbed| beside(testbed, Route::Hub, "long-name", long_name),
    ));
    for route in [Route::Gateway, Route::Hub] {
        let name = format!("heads::headers that grow on the way via {} end nobody's watch", route.name());
        let run = move |testbed: &Testbed| beside(testbed, route, "growing", |testbed| growing(testbed, route));
        trials.push(test(fixture, name, run));
    }
    trials.push(test(fixture, "heads::early hints of a workload end nobody's watch", |testbed| {
        let workload = Workload::start(testbed)?;
        beside(testbed, Route::Gateway, "hints", |testbed| workload.ask(testbed))
    }));
    trials
}

/// Opens watches, attacks the member's connections with `attack`, and expects an event on each
/// watch.
fn beside(testbed: &Testbed, route: Route, name: &str, attack: impl Fn(&Testbed) -> Result<()>) -> Result<()> {
    let namespace = &format!("heads-{name}-{}", route.name());
    testbed.member.server.create_namespace(namespace)?;
    let path = format!("{}/api/v1/namespaces/{namespace}/configmaps", Testbed::proxy_path(CLUSTER));
    let path = format!("{path}?fieldSelector=metadata.name=seen&watch=true");
    let runtime = Runtime::new()?;
    let (victim, authorization) = (client(testbed, route), bearer(&testbed.token));
    let headers = [("authorization", &*authorization)];
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let response = runtime.block_on(async { timeout(LIMIT, victim.open(&path, &headers)).await })??;
        ensure!(response.status() == StatusCode::OK, "{}", response.status());
        watches.push(response.into_body());
    }
    let attacked: Vec<_> = (0..ATTACKS).map(|_| attack(testbed)).collect();
    testbed.member.server.kubectl().ok(&format!("create configmap seen -n {namespace}"))?;
    runtime.block_on(async {
        for (number, watch) in watches.iter_mut().enumerate() {
            let frame = timeout(LIMIT, watch.frame()).await.with_context(|| format!("nothing on watch {number}"))?;
            let frame = frame.with_context(|| format!("watch {number} ended"))?;
            let frame = frame.with_context(|| format!("watch {number} was cut off"))?;
            let text = frame.into_data().map(|data| String::from_utf8_lossy(&data).into_owned()).unwrap_or_default();
            ensure!(text.contains("ADDED"), "watch {number} got {text:?}");
        }
        Ok(())
    })?;
    attacked.into_iter().collect()
}

/// Two values that are within the member's limit as text, and beyond it in HPACK's Huffman code (19
/// bits a byte).
fn growing(testbed: &Testbed, route: Route) -> Result<()> {
    let (value, authorization) = ("\\".repeat(450_000), bearer(&testbed.token));
    let path = format!("{}/version", Testbed::proxy_path(CLUSTER));
    let headers = [("authorization", &*authorization), ("x-a", &*value), ("x-b", &*value)];
    let response = client(testbed, route).send(&Method::GET, &path, &headers, Bytes::new())?;
    let response = response.expect(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)?;
    ensure!(response.text().contains("512 KiB"), "{}", response.text());
    Ok(())
}

/// A header name that Go's servers and clients forward, and that the `http` library does not
/// accept: more than 64 KiB.
fn long_name(testbed: &Testbed) -> Result<()> {
    let (path, authorization) = (format!("{}/version", Testbed::proxy_path(CLUSTER)), bearer(&testbed.token));
    let name = "a".repeat(70_000);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: hub\r\nAuthorization: {authorization}\r\n{name}: b\r\nConnection: close\r\n\r\n"
    );
    let answer = async {
        let mut io = client(testbed, Route::Hub).connect().await?;
        io.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        io.read_to_end(&mut answer).await.ok();
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = Runtime::new()?.block_on(async { timeout(LIMIT, answer).await }).context("no answer")??;
    ensure!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    Ok(())
}

/// A pod of the member that answers each request with hints, which API servers forward unchanged,
/// cut where a frame is full.
struct Workload {
    path: String,
    asked: Arc<AtomicUsize>,
}

// === impl Workload ===

impl Workload {
    /// The size of a frame of Go's servers.
    const FRAME: usize = 16 << 10;
    /// Fewer bytes than this come before the value that fills a hint's frame.
    const BEFORE: usize = 64;
    const NAMESPACE: &str = "heads-workload";

    fn start(testbed: &Testbed) -> Result<Self> {
        // API servers do not connect to a pod's loopback address.
        let address = hub_tests::ports::own_address()?.context("this machine has a loopback address only")?;
        let listener = TcpListener::bind((address, 0))?;
        let port = listener.local_addr()?.port();
        let asked = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                // The API server may have disconnected already.
                let _ = Self::answer(client);
            }
        });
        testbed.member.server.create_namespace(Self::NAMESPACE)?;
        testbed.member.run_pod(Self::NAMESPACE, "hinting", "")?;
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}});
        let line = format!("pod hinting -n {} --subresource=status", Self::NAMESPACE);
        testbed.member.server.patch(&line, &status)?;
        let pod = format!("/api/v1/namespaces/{}/pods/hinting:{port}/proxy/", Self::NAMESPACE);
        Ok(Self { path: format!("{}{pod}", Testbed::proxy_path(CLUSTER)), asked })
    }

    /// Each hint has a forbidden field; in one of them, a frame ends right after `X-A`.
    fn answer(mut client: TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            head.extend_from_slice(&byte);
        }
        for before in 0..Self::BEFORE {
            let value = "{".repeat(Self::FRAME - before);
            write!(client, "HTTP/1.1 103 Early Hints\r\nUpgrade: x\r\nX-A: {value}\r\nX-B: y\r\n\r\n")?;
        }
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    }

    /// The outcome of the request itself does not matter once it has reached the workload.
    fn ask(&self, testbed: &Testbed) -> Result<()> {
        let before = self.asked.load(Ordering::Relaxed);
        let answer = client(testbed, Route::Gateway).get(&self.path, &[("authorization", &bearer(&testbed.token))])?;
        ensure!(self.asked.load(Ordering::Relaxed) > before, "never asked: {}", answer.text());
        Ok(())
    }
}

/// A name that HTTP/2 libraries treat differently, in a head of more than one of the member's
/// frames (256 KiB).
fn malformed_name(testbed: &Testbed) -> Result<()> {
    const FRAME: usize = 16 << 10;
    let (path, authorization) = (format!("{}/version", Testbed::proxy_path(CLUSTER)), bearer(&testbed.token));
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", &path),
        ("authorization", &authorization),
        ("x\"y", "z"),
    ] {
        literal(&mut block, name, value);
    }
    for _ in 0..4 {
        literal(&mut block, "x-long", &"X".repeat(80_000));
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let last = block.len().div_ceil(FRAME) - 1;
    for (number, part) in block.chunks(FRAME).enumerate() {
        let kind = if number == 0 { 1 } else { 9 };
        let flags = u8::from(number == 0) | if number == last { 4 } else { 0 };
        bytes.extend_from_slice(&u32::try_from(part.len())?.to_be_bytes()[1..]);
        bytes.extend_from_slice(&[kind, flags, 0, 0, 0, 1]);
        bytes.extend_from_slice(part);
    }
    let authority = testbed.gateway.authority();
    let client = kit::client::Client::new(testbed.gateway.address(), Trust::Authority(authority), None);
    let answer = async {
        let mut io = client.raw(ALPN_H2).await?;
        io.write_all(&bytes).await?;
        io.flush().await?;
        let mut answer = Vec::new();
        // The Status contains the cause; the rest of this connection does not matter.
        while !String::from_utf8_lossy(&answer).contains("\"code\"") {
            ensure!(io.read_buf(&mut answer).await? > 0, "the connection ended without an answer");
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = Runtime::new()?.block_on(async { timeout(LIMIT, answer).await }).context("no answer")??;
    ensure!(answer.contains("header name"), "{answer}");
    Ok(())
}

/// A header line as a literal without indexing (RFC 7541 sections 5 and 6.2.2).
fn literal(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        let mut length = text.len();
        if length < 127 {
            block.push(u8::try_from(length).unwrap_or_default());
        } else {
            block.push(127);
            length -= 127;
            while length >= 128 {
                block.push(u8::try_from(length % 128).unwrap_or_default() | 128);
                length /= 128;
            }
            block.push(u8::try_from(length).unwrap_or_default());
        }
        block.extend_from_slice(text.as_bytes());
    }
}
