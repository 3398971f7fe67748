//! Members in bytes, asked for an upgrade: refusals that are wrong or never end, and switches that
//! are more than that.

use kit::client::H1Connection;
use system_tests::prelude::*;

use super::super::{Fixture, Victim};
use super::name;

/// Far more than a pipe or a window has room for.
const FLOOD: usize = 8 << 20;

/// What the caller finds.
#[derive(Clone, Copy)]
enum Expected {
    /// 502 that names the cluster, with this text.
    Refused(&'static str),
    /// 101, and then so many bytes.
    Switched(usize),
}

/// The text after `HTTP/1.1 `, and a text that comes so many times behind it.
const ROWS: &[(&str, &str, &str, usize, Expected)] = &[
    (
        "a refusal without an end",
        "403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n",
        "a\r\nevil-words\r\n",
        200_000,
        Expected::Refused("has more than 1024 KiB"),
    ),
    (
        "a long refusal with a length",
        "403 Forbidden\r\nContent-Length: 5000000\r\n\r\n",
        "evil-words",
        500_000,
        Expected::Refused("has more than 1024 KiB"),
    ),
    (
        "trailers of a refusal without an end",
        "403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "X-Endless: evil-words\r\n",
        500_000,
        Expected::Refused(""),
    ),
    (
        "lines of a refusal without an end",
        "403 Forbidden\r\n",
        "X-Endless: evil-words\r\n",
        200_000,
        Expected::Refused(""),
    ),
    (
        "two lengths of a refusal",
        "403 Forbidden\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        "evil-words",
        1,
        Expected::Refused(""),
    ),
    (
        "a chunk of a refusal whose size is none",
        "403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "evil-words",
        1,
        Expected::Refused(""),
    ),
    ("no switch and no refusal", "200 OK\r\nContent-Length: 10\r\n\r\n", "evil-words", 1, Expected::Refused("")),
    (
        "a switch with a length",
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\n",
        "0123456789",
        1,
        Expected::Switched(10),
    ),
    (
        "a switch with chunks",
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n\r\n",
        "0123456789",
        1,
        Expected::Switched(10),
    ),
    (
        "a switch and a flood",
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "0123456789abcdef",
        FLOOD / 16,
        Expected::Switched(FLOOD),
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_of_a_member_on_an_upgrade_is_anybody_elses() {
    let hub = FakeHub::start().await;
    hub.add_token("attacker", TokenUser::new("attacker", &[]));
    let mut members = Vec::new();
    for (number, (_, first, again, times, _)) in ROWS.iter().enumerate() {
        let answer = format!("HTTP/1.1 {first}{}", again.repeat(*times));
        let member = RawMember::always(Act::answer(answer, Act::Hold)).await;
        hub.put_secret(cluster(&name(number), &member));
        members.push(member);
    }
    let fixture = Fixture::with(hub, &[]).await;
    let mut wire = fixture.shared("victim").await;
    let mut victim = Victim::begin(&mut wire, &fixture).await;
    for (number, (row, _, _, _, expected)) in ROWS.iter().enumerate() {
        let name = name(number);
        let mut attacker = fixture.testbed.client().h1().await.expect("the gateway accepts connections");
        let headers = [("Authorization", "Bearer attacker")];
        let target = proxied(&name, "/x");
        let head = within(WAIT, *row, attacker.upgrade("GET", &target, "websocket", &headers)).await.expect("a head");
        // Before anything of a switch is read.
        victim.goes_on(&mut wire, row).await;
        match expected {
            Expected::Refused(why) => {
                let text = String::from_utf8_lossy(&attacker.body().await.expect("a whole body")).into_owned();
                assert!(
                    head.status == 502 && text.contains(&name) && text.contains(why),
                    "{row}: {} {text}",
                    head.status
                );
                assert!(!text.contains("evil-words"), "{row}: {text}");
            }
            Expected::Switched(bytes) => {
                assert_eq!(head.status, 101, "{row}: {head:?}");
                let framing = ["content-length", "transfer-encoding"].map(|name| head.header(name));
                assert_eq!(framing, [None, None], "{row}");
                within(WAIT, *row, all_of(&mut attacker, *bytes)).await;
            }
        }
        victim.goes_on(&mut wire, row).await;
    }
}

async fn all_of(attacker: &mut H1Connection, bytes: usize) {
    let mut read = 0;
    while read < bytes {
        let piece = attacker.read().await.expect("bytes");
        assert!(!piece.is_empty(), "it ended after {read} of {bytes} bytes");
        read += piece.len();
    }
    assert_eq!(read, bytes);
}
