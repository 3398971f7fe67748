//! The dashboard's HTTP, byte by byte: a client that adds nothing by itself.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::time::Instant;

const WITHIN: Duration = Duration::from_secs(30);

/// The address of a dashboard.
#[derive(Debug, Clone)]
pub struct Address {
    socket: SocketAddr,
    token: String,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: Vec<String>,
    pub body: String,
    /// Time until its first byte.
    #[allow(dead_code, reason = "the test of many clusters measures it")]
    pub first_byte: Duration,
}

/// A stream of events.
pub struct Events {
    reader: BufReader<TcpStream>,
    /// Bytes of the lines read so far.
    pub read: usize,
}

// === impl Address ===

impl Address {
    pub fn parse(line: &str) -> Result<Self> {
        let rest = line.trim().strip_prefix("http://").context("an address")?;
        let (socket, token) = rest.trim_end_matches('/').split_once('/').context("a token")?;
        let socket: SocketAddr = socket.parse()?;
        ensure!(socket.ip().is_loopback() && token.len() >= 32, "{line}");
        Ok(Self { socket, token: token.to_owned() })
    }

    pub fn with_token(&self, token: &str) -> Self {
        Self { socket: self.socket, token: token.to_owned() }
    }

    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.socket, self.token)
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        self.send("GET", path, headers)
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        let start = Instant::now();
        let mut stream = self.ask(method, path, headers)?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        let first_byte = start.elapsed();
        let mut rest = first.to_vec();
        if path.ends_with("events") && method == "GET" {
            // A stream would not end, and a refusal is short.
            let mut chunk = [0; 4096];
            let read = stream.read(&mut chunk)?;
            rest.extend_from_slice(&chunk[..read]);
        } else {
            stream.read_to_end(&mut rest)?;
        }
        let text = String::from_utf8(rest)?;
        let (head, body) = text.split_once("\r\n\r\n").context("a head")?;
        let mut head: Vec<String> = head.lines().map(str::to_owned).collect();
        let status = head.remove(0).split(' ').nth(1).context("a status")?.parse()?;
        Ok(Answer { status, head, body: body.to_owned(), first_byte })
    }

    pub fn events(&self, path: &str) -> Result<Events> {
        let mut reader = BufReader::new(self.ask("GET", path, &[])?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(reader.read_line(&mut head)? > 0, "it ended: {head}");
        }
        ensure!(head.contains(" 200 ") && head.contains("text/event-stream"), "{head}");
        Ok(Events { reader, read: 0 })
    }

    /// A connection on which nothing is sent.
    #[allow(dead_code, reason = "the test of many clusters has none")]
    pub fn silent(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.socket)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    #[allow(dead_code, reason = "the test of many clusters has none")]
    pub fn port(&self) -> u16 {
        self.socket.port()
    }

    /// Whether nothing listens on this port of another address of this machine.
    pub fn is_refused_elsewhere(&self) -> Result<bool> {
        let Some(own) = hub_tests::ports::own_address()? else { return Ok(true) };
        let elsewhere = SocketAddr::new(own, self.socket.port());
        Ok(TcpStream::connect_timeout(&elsewhere, WITHIN).is_err())
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.socket)?;
        stream.set_read_timeout(Some(WITHIN))?;
        let mut head = format!("{method} /{}/{path} HTTP/1.1\r\n", self.token);
        for (name, value) in [("Host", self.socket.to_string()), ("Connection", "close".to_owned())] {
            if headers.iter().all(|(other, _)| *other != name) {
                write!(head, "{name}: {value}\r\n")?;
            }
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n")?;
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        Ok(stream)
    }
}

// === impl Answer ===

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.iter().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

// === impl Events ===

impl Events {
    /// The next event.
    pub fn next(&mut self) -> Result<Value> {
        loop {
            let mut line = String::new();
            self.read += self.reader.read_line(&mut line)?;
            ensure!(!line.is_empty(), "it ended");
            // Between events are the sizes of chunks, and comments.
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).with_context(|| data.to_owned());
            }
        }
    }

    /// The first event that meets the condition `is`.
    pub fn until(&mut self, limit: Duration, mut is: impl FnMut(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + limit;
        let mut last = Value::Null;
        while Instant::now() < end {
            last = self.next()?;
            if is(&last) {
                return Ok(last);
            }
        }
        bail!("not within {limit:?}; the last event was {last}")
    }
}
