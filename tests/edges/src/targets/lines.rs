//! Any body of a watch in frames of any size: its lines in order, none made up, none longer than a
//! line may be, and no more room taken than some such lines need.
//!
//! Input: the size of frames in the first byte, then the body.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hub::{Line, Lines};
use kube::Client;
use kube::client::Body;
use tokio::runtime::Builder;
use tower::service_fn;

pub const WORDS: &[&str] = &["\n", "\n\n", "\r\n", "{\"type\":\"BOOKMARK\"}", "0123456789abcdef0123456789abcdef", "\0"];

/// Longest line that is taken, in bytes.
const LONGEST: usize = 64;
/// A buffer is doubled when what is read (a longest line and a frame at most) does not fit behind
/// what was taken of it, unless that is as long, and so makes room. It had less than twice as much.
const ROOM: usize = 4;
const SILENCE: Duration = Duration::from_secs(1);

pub fn check(input: &[u8]) {
    let Some((size, text)) = input.split_first() else { return };
    let size = usize::from(*size).max(1);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let (lines, end) = runtime.block_on(read(text, size));
    let pieces: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    let (rest, whole) = pieces.split_last().expect("one at least");
    let whole: Vec<_> = whole.iter().filter(|line| !line.is_empty()).collect();
    assert!(lines.iter().all(|line| line.len() <= LONGEST), "{lines:?}");
    assert!(lines.len() <= whole.len() && lines.iter().zip(&whole).all(|(line, whole)| line == *whole), "{lines:?}");
    let next = whole.get(lines.len()).map_or(rest.len(), |line| line.len());
    match end {
        Line::End => assert_eq!(lines.len(), whole.len()),
        Line::TooLong => assert!(next > LONGEST, "a line of {next} bytes counts as too long"),
        Line::Whole(_) => unreachable!("that is no end"),
    }
}

async fn read(text: &[u8], size: usize) -> (Vec<Bytes>, Line) {
    let frames: Vec<_> = text.chunks(size).map(Bytes::copy_from_slice).collect();
    let frames = stream::iter(frames.into_iter().map(|frame| Ok::<_, Infallible>(Frame::data(frame))));
    let mut lines = Lines::within(body(StreamBody::new(frames)).await, LONGEST, SILENCE);
    let mut found = Vec::new();
    loop {
        match lines.next().await {
            Line::Whole(line) => found.push(line),
            end => return (found, end),
        }
        assert!(lines.held() <= ROOM * (LONGEST + size), "{} bytes are held", lines.held());
    }
}

/// A body as a client of the hub gets it: kube makes bodies of several frames in no other way.
async fn body<B>(frames: B) -> Body
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let mut frames = Some(frames);
    let answer = service_fn(move |_| ready(frames.take().map(Response::new).ok_or("one request")));
    let response = Client::new(answer, "default").send(Request::new(Body::empty())).await;
    response.expect("an answer").into_body()
}
