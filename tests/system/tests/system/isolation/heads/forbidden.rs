//! Fields that HTTP/2 forbids, and heads of more frames than the library takes. Go's reverse proxy,
//! an API server's way to all servers behind `…/proxy`, passes both on.

use super::*;

/// Two parts of a head, in a frame each: the first ends between two fields, and one of them is
/// forbidden.
fn cut(flags: u8, stream: u32, first: &[(&str, &str)]) -> Vec<u8> {
    let mut frames = encode(HEADERS, flags, stream, &literals(first));
    frames.extend(encode(CONTINUATION, END_HEADERS, stream, &literals(&[("x-rest", "1")])));
    frames
}

/// Requests this member's `answer` beside a watch, which must go on; returns the status of the
/// answer, if that was whole.
async fn beside(answer: impl Fn(u32) -> Vec<u8> + Clone + Send + Sync + 'static) -> Option<u16> {
    let member = FrameMember::start(move |_, frames| {
        let answer = answer.clone();
        like_go(frames, move |stream| if stream == 3 { answer(stream) } else { ok(stream) })
    })
    .await;
    let testbed = Testbed::with(&member).await;
    let mut victim = Victim::watching(&testbed).await;
    let answer = testbed.connect(Http::H2).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
    assert_eq!(victim.watch.event().await, "event\n");
    victim.assert_goes_on().await;
    answer.ok().map(|answer| answer.status)
}

#[tokio::test]
async fn a_forbidden_field_of_an_early_hint_ends_nobodys_stream() {
    for forbidden in ["upgrade", "connection", "keep-alive", "proxy-connection", "te"] {
        let status = beside(move |stream| {
            let hint = cut(0, stream, &[(":status", "103"), (forbidden, "x")]);
            [hint, ok(stream)].concat()
        });
        assert_eq!(status.await, Some(502), "{forbidden}");
    }
}

#[tokio::test]
async fn a_forbidden_field_of_trailers_ends_nobodys_stream() {
    beside(|stream| {
        let mut answer = encode(HEADERS, END_HEADERS, stream, STATUS_200);
        answer.extend(encode(DATA, 0, stream, b"body"));
        answer.extend(cut(END_STREAM, stream, &[("upgrade", "x")]));
        answer
    })
    .await;
}

#[tokio::test]
async fn a_head_of_very_many_short_lines_ends_nobodys_stream() {
    /// `net/http.Transport.MaxResponseHeaderBytes`, in lines of six bytes, each of which takes
    /// seven here.
    const LINES: usize = (10 << 20) / 6;
    /// Lines that differ.
    const SOME: u32 = 1 << 12;
    // Go's encoder has each line remembered.
    for kind in [0, 0x40] {
        let status = beside(move |stream| {
            let line = |number: u32| {
                let letter = |shift: u32| b'a' + u8::try_from((number >> shift) & 0xf).expect("four bits");
                [kind, 4, b'!', letter(0), letter(4), letter(8), 0]
            };
            let some: Vec<u8> = (0..SOME).flat_map(line).collect();
            let head = [STATUS_200.to_vec(), some.repeat(LINES / SOME as usize)].concat();
            in_frames(END_STREAM, stream, &head)
        });
        assert_eq!(status.await, Some(502));
    }
}
