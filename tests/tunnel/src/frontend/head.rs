//! A tunnel-server's answer to a `CONNECT`, over HTTP/1.1 read by hand: a test must see each byte
//! as it comes.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tunnel::Refusal;

/// Longest answer read.
const LONGEST: usize = 64 << 10;
/// How long the body and the end of a refusal may take after its head.
const BODY: Duration = Duration::from_secs(5);

/// An answer to a `CONNECT`.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    /// The reason phrase; over HTTP/2, which has none, the message.
    pub phrase: String,
    /// `tunnel-reason`.
    pub reason: String,
    /// `tunnel-hop`.
    pub hop: String,
    /// The sentence: the body.
    pub message: String,
    /// All of the head, for tests that check it. Empty over HTTP/2.
    pub head: String,
    /// Whether the server closed the connection after it.
    pub closed: bool,
}

/// Reads up to the blank line; the second value is the bytes that came together with it.
pub async fn read<R: AsyncRead + Unpin>(io: &mut R) -> io::Result<(Answer, Vec<u8>)> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > LONGEST {
            return Err(io::Error::other("a head without end"));
        }
        // As large as kube-apiserver's: bytes that come together are seen together.
        buffer.reserve(4096);
        if io.read_buf(&mut buffer).await? == 0 {
            let text = format!("the end after {} bytes of a head", buffer.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
    };
    let rest = buffer.split_off(end);
    let head = String::from_utf8(buffer).map_err(io::Error::other)?;
    Ok((Answer::parse(head)?, rest))
}

// === impl Answer ===

impl Answer {
    fn parse(head: String) -> io::Result<Self> {
        let status_line = head.lines().next().unwrap_or_default().to_owned();
        let mut words = status_line.splitn(3, ' ');
        if words.next() != Some("HTTP/1.1") {
            return Err(io::Error::other(format!("no HTTP/1.1: {status_line}")));
        }
        let status = words.next().and_then(|status| status.parse().ok());
        Ok(Self {
            status: status.ok_or_else(|| io::Error::other(format!("no status: {status_line}")))?,
            phrase: words.next().unwrap_or_default().to_owned(),
            reason: header(&head, "tunnel-reason"),
            hop: header(&head, "tunnel-hop"),
            head,
            ..Self::default()
        })
    }

    /// Value of a header line, empty if there is none.
    pub fn header(&self, name: &str) -> String {
        header(&self.head, name)
    }

    pub(super) async fn with_body<R: AsyncRead + Unpin>(mut self, io: &mut R, mut body: Vec<u8>) -> Self {
        let read = tokio::time::timeout(BODY, io.read_to_end(&mut body)).await;
        self.closed = matches!(read, Ok(Ok(_)));
        self.message = String::from_utf8_lossy(&body).trim_end().to_owned();
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: refusal.reason.status().as_u16(),
            phrase: refusal.message.clone(),
            reason: refusal.reason.as_str().to_owned(),
            hop: refusal.hop.as_str().to_owned(),
            message: refusal.message,
            head: String::new(),
            closed: true,
        }
    }
}

fn header(head: &str, name: &str) -> String {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
    values.next().unwrap_or_default().to_owned()
}
