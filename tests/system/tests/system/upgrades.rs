//! Upgrades: exec, attach, port-forward and WebSocket watches reach the member on a connection of
//! their own, and after its 101 every byte arrives on the other side.
//!
//! The members speak bytes, so that a test sees the bytes on the wire and not a library's reading
//! of them.

mod bytes;
mod heads;
mod refusals;
mod rights;
mod websocket;

use ::bytes::Bytes;
use kit::client::{Client, H1Connection, H1Head};
use system_tests::{ADMIN, Answer, Dialect, Testbed};

/// Path and query of an exec.
pub(crate) const EXEC: &str = "/api/v1/namespaces/ns/pods/p/exec?command=sh&stdin=true&stdout=true";
/// The protocol of kubectl's fallback.
pub(crate) const SPDY: &str = "SPDY/3.1";

/// A request head as a raw member received it.
#[derive(Debug)]
pub(crate) struct Head {
    /// Method, target and version.
    pub(crate) line: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

// === impl Head ===

impl Head {
    pub(crate) fn parse(raw: &Bytes) -> Self {
        let text = std::str::from_utf8(raw).expect("the head is ASCII");
        let mut lines = text.trim_end().split("\r\n");
        let line = lines.next().expect("a request line").to_owned();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header line has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self { line, headers: lines.map(header).collect() }
    }

    /// The values of all lines of a header, in order.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.headers.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// Asks for an upgrade of [`system_tests::CLUSTER`], by a bearer token, on a connection of its own.
async fn upgrade_as(
    dialect: Dialect,
    token: &str,
    testbed: &Testbed,
    (method, rest): (&str, &str),
    protocol: &str,
    headers: &[(&str, &str)],
) -> (H1Connection, H1Head) {
    upgrade_over(&dialect.client(testbed), token, (method, &dialect.path(rest)), protocol, headers).await
}

/// As [`upgrade_as`], by a client of any port and of any target.
pub(crate) async fn upgrade_over(
    client: &Client,
    token: &str,
    (method, target): (&str, &str),
    protocol: &str,
    headers: &[(&str, &str)],
) -> (H1Connection, H1Head) {
    let mut connection = client.h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {token}");
    let headers = [&[("Authorization", authorization.as_str())], headers].concat();
    let head = connection.upgrade(method, target, protocol, &headers).await.expect("an answer to the upgrade request");
    (connection, head)
}

/// As [`upgrade_as`], by the administrator.
async fn upgrade(
    dialect: Dialect,
    testbed: &Testbed,
    method: &str,
    rest: &str,
    protocol: &str,
) -> (H1Connection, H1Head) {
    upgrade_as(dialect, ADMIN, testbed, (method, rest), protocol, &[]).await
}

/// An exec by WebSocket that succeeds.
async fn exec(dialect: Dialect, testbed: &Testbed) -> H1Connection {
    let (connection, head) = upgrade(dialect, testbed, "GET", EXEC, "websocket").await;
    assert_eq!(head.status, 101, "{head:?}");
    connection
}

/// The whole answer to an upgrade that was refused; asserts that the connection is closed after it.
pub(crate) async fn refusal((mut connection, head): (H1Connection, H1Head)) -> Answer {
    assert_ne!(head.status, 101);
    let body = connection.body().await.expect("a whole body");
    assert_eq!(head.header("connection"), Some("close"), "{head:?}");
    let rest = connection.read_to_end().await.expect("a proper end of the connection");
    assert!(rest.is_empty(), "something came after the refusal: {rest:?}");
    Answer { status: head.status, headers: head.headers, body, trailers: connection.trailers().clone() }
}
