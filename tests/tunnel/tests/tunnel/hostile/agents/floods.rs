//! Agents that change their windows, or say goodbye, again and again beside many streams: the HTTP
//! library walks through all of these for each such frame.

use std::time::Duration;

use kit::exposition;
use kit::frames::{GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, RST_STREAM, SETTINGS, STATUS_200, encode, in_frames, setting};
use kit::wait::{WAIT, becomes, within};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tunnel::{Destination, Link, Stream};
use tunnel_tests::{AgentSpec, Frontend, Testbed, measure, testbed::CLUSTER};

use super::{AgentLink, Server, Stage as _, evil, linked, next};

/// Streams beside the flood, and how many of them were reset.
const STREAMS: usize = 1_500;
const RESET: usize = 500;
/// Fewer than the dials that a cluster may have.
const AT_A_TIME: usize = 100;
/// Most frames of a flood.
const FLOOD: usize = 100_000;
/// Frames of one write: half of the 1,000 that end a link (`net::costly`).
const WRITE: usize = 500;
/// Within this, others have their answers meanwhile.
const PROMPT: Duration = Duration::from_secs(1);
/// On a slow or busy machine, the limit is this many times the sum of one such write and the
/// slowest answer without a flood. A link may send two writes before it ends; a server without
/// limits would take a hundred at once.
const TIMES: u32 = 10;
/// But no more than this: the write is measured on the server that is attacked.
const LATEST: Duration = Duration::from_secs(5);
/// Answers without a flood, of which the slowest counts.
const CALM: usize = 20;

async fn open(link: Link) -> Stream {
    let to = Destination::parse("127.0.0.1:443").expect("one");
    link.open(&to, Some(&evil())).await.expect("a stream")
}

/// Opens its streams, waits until some of them are reset, and then sends `frames`, one after the
/// other, for as long as they are taken. Returns how long the server took for the first write.
async fn floods(mut link: AgentLink, frames: [Vec<u8>; 2]) -> Duration {
    for _ in 0..STREAMS {
        let stream = next(&mut link, HEADERS).await;
        link.send_all(&in_frames(0, stream, STATUS_200)).await.expect("an answer");
    }
    for _ in 0..RESET {
        next(&mut link, RST_STREAM).await;
    }
    let write = frames.concat().repeat(WRITE / frames.len());
    let begin = Instant::now();
    link.send_all(&write).await.expect("a link");
    link.settled().await.expect("half of what ends a link");
    let took = begin.elapsed();
    for _ in 0..FLOOD / WRITE {
        if link.send_all(&write).await.is_err() {
            break;
        }
    }
    let _ = link.ignore().await;
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_and_goodbyes_beside_many_streams_end_the_link_before_others_wait() {
    let windows = |bytes: u32| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, bytes));
    // Its last stream is the last that there can be: all of them go on.
    let goodbye = encode(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).start().await;
    let (shared, apart) = (testbed.caller(Frontend::H2), testbed.caller(Frontend::Tls));
    let mut victim = apart.must(&testbed.api_server.authority()).await;
    let stage = Server { testbed: &testbed, frontend: &shared };
    let flooded = async || {
        exposition::sum::<usize>(&testbed.metrics(0).await, "tunnel_server_links_ended_total", "reason=\"frames\"")
    };
    for (before, frames) in [[windows(65_535), windows(65_536)], [goodbye.clone(), goodbye]].into_iter().enumerate() {
        let flood = tokio::spawn(floods(linked(&stage).await, frames));
        let (link, mut streams) = (shared.link().await.expect("a link"), Vec::new());
        for _ in 0..STREAMS / AT_A_TIME {
            let opening: JoinSet<_> = (0..AT_A_TIME).map(|_| open(link.clone())).collect();
            streams.extend(within(WAIT, "streams", opening.join_all()).await);
        }
        let calm = measure::echo_p99(&mut victim, CALM).await.expect("an echo");
        streams.truncate(STREAMS - RESET);
        let mut slowest = Duration::ZERO;
        within(WAIT, format!("the end of link {before}"), async {
            while flooded().await == before {
                slowest = slowest.max(measure::echo_p99(&mut victim, 1).await.expect("an echo"));
            }
        })
        .await;
        becomes(WAIT, "the link to be gone", async || !stage.is_linked().await).await;
        let write = within(WAIT, "the end of the flood", flood).await.expect("no panic");
        let limit = (TIMES * (calm + write)).clamp(PROMPT, LATEST);
        assert!(
            slowest < limit,
            "an echo took {slowest:?}, and not {limit:?}: without a flood {calm:?}, and {WRITE} of its frames {write:?}"
        );
    }
    measure::echo_p99(&mut victim, 3).await.expect("another link stays");
    drop(victim);
    testbed.wait_idle().await;
}
