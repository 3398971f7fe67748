//! Heads whose remembered fields would keep all of them in memory: h2 remembers pseudo-headers as
//! slices of the block they came in.

use super::*;

/// Bytes that the front keeps of one connection.
const KEPT: usize = 8 << 20;
const VALUE: usize = 900_000;

/// A long line, and behind it, where none may stand, a pseudo-header to be remembered.
fn pinning(number: usize) -> Vec<u8> {
    let mut block = literals(&[("x-long", &"v".repeat(VALUE))]);
    let mut late = literals(&[(":path", &format!("/{number}"))]);
    late[0] = 0x40;
    block.extend(late);
    block
}

#[tokio::test]
async fn a_client_that_pins_its_heads_is_cut_off() {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let cut = async {
        for number in 0.. {
            let stream = client.stream();
            if client.try_send_all(&in_frames(END_STREAM, stream, &pinning(number))).await.is_err() {
                return number;
            }
            if client.try_settled().await.is_err() {
                return number;
            }
        }
        unreachable!("it goes on for ever")
    };
    let sent = within(WAIT * 3, "the end of the connection", cut).await;
    assert!((KEPT / VALUE - 1..=KEPT / VALUE + 2).contains(&sent), "after {sent}");
}

#[tokio::test]
async fn a_client_of_large_heads_goes_on() {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let value = "v".repeat(400_000);
    for _ in 0..KEPT / value.len() + 5 {
        let bearer = format!("Bearer {ADMIN}");
        let headers = [("authorization", bearer.as_str()), ("x-long", &value)];
        let answer = connection.h2().get("/version", &headers).await.expect("an answer");
        assert_eq!(answer.status(), 200);
    }
}
