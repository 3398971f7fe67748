//! Responses of workloads, which a member passes on from behind its own proxy: their heads end no
//! connection that carries anything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const POD: &str = "/api/v1/namespaces/ns/pods/p/proxy/";
/// More than the gateway holds of a head: 12 MiB. Each field is a frame.
const FIELDS: usize = 1_000;
const FIELD: usize = 16_000;

/// A head that does not end.
fn endless(stream: u32) -> Vec<u8> {
    let mut frames = encode(HEADERS, END_STREAM, stream, STATUS_200);
    let more = encode(CONTINUATION, 0, stream, &literals(&[("x-endless", "x".repeat(FIELD).as_str())]));
    frames.extend(more.repeat(FIELDS));
    frames
}

/// Of all requests on all connections, the first is a watch, the second gets the endless head, and
/// each further one an answer and, for the watch, an event.
async fn serve(mut frames: MemberFrames, asked: &AtomicUsize) -> io::Result<()> {
    let mut watch = None;
    loop {
        let frame = frames.read().await?;
        if frame.kind != HEADERS {
            continue;
        }
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => {
                watch = Some(frame.stream);
                frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
            }
            1 => frames.send_all(&endless(frame.stream)).await?,
            _ => {
                frames.send_all(&ok(frame.stream)).await?;
                if let Some(watch) = watch {
                    frames.send(DATA, 0, watch, b"event\n").await?;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_head_that_a_pod_does_not_end_ends_nobodys_watch() {
    let asked = Arc::<AtomicUsize>::default();
    let member = FrameMember::start(move |_, frames| {
        let asked = Arc::clone(&asked);
        async move { serve(frames, &asked).await }
    })
    .await;
    let testbed = Testbed::with(&member).await;
    let mut victim = Victim::watching(&testbed).await;
    let answer = testbed.connect(Http::H2).await.get(&proxied(CLUSTER, POD)).await;
    assert!(answer.status_message(502, "InternalError").contains(&format!("cluster {CLUSTER}")), "{}", answer.text());
    victim.assert_goes_on().await;
    let answer = testbed.connect(Http::H2).await.get(&proxied(CLUSTER, POD)).await;
    assert_eq!(answer.status, 200, "other requests to workloads get another connection");
    victim.assert_goes_on().await;
}
