//! Attacks of members: on the gateway, and on the hub's connection, on which their answers travel
//! beside those of other members.

mod http1;
mod http2;
mod upgrades;

use kit::frames::{RST_STREAM, Seen, encode};
use system_tests::prelude::*;
use tokio::sync::Notify;

use super::{Fixture, Victim};

/// What the caller of such a member gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// 502 that names the cluster.
    Refused,
    /// 503 that names the cluster: the member says that it did nothing.
    Later,
    /// An answer that is seen not to be whole, or none.
    Cut,
    /// The same, for a caller that begins to read when the member has sent everything: one that
    /// keeps up might take in as much as comes.
    CutUnread,
    /// An answer with this body.
    Answer(usize),
    /// A body of which so many bytes come, and that goes on.
    Open(usize),
    /// Nothing yet; a caller that does not wait loses nothing.
    Silence,
}

/// A member, and what a caller of it gets.
struct Asked {
    row: &'static str,
    secret: ClusterSecret,
    expected: &'static [Expected],
    /// Notified when the gateway has read all that the member sent, if the member can see that.
    is_read: Option<Arc<Notify>>,
}

/// Asks each of these clusters in turn, beside a victim of another.
async fn beside_a_victim(hub: FakeHub, rows: &[Asked]) {
    for asked in rows {
        hub.put_secret(asked.secret.clone());
    }
    let fixture = Fixture::with(hub, &[]).await;
    let mut wire = fixture.shared("victim").await;
    let mut victim = Victim::begin(&mut wire, &fixture).await;
    let (mut wrong, mut open) = (Vec::new(), Vec::new());
    for (number, Asked { row, expected, is_read, .. }) in rows.iter().enumerate() {
        let name = name(number);
        let stream = wire.request("GET", &proxied(&name, "/x"), &[], true).await;
        if let [goes_on @ (Expected::Open(_) | Expected::Silence)] = expected {
            if *goes_on == Expected::Silence {
                let is_read = is_read.as_ref().expect("silence alone says nothing");
                within(WAIT, format!("{row}, read"), is_read.notified()).await;
            }
            wire.until(row, |wire| goes_on.is_met(&name, wire.seen(stream))).await;
            open.push((*row, name, stream, goes_on));
        } else {
            if *expected == [Expected::CutUnread] {
                let is_read = is_read.as_ref().expect("a member that knows when it has sent everything");
                within(WAIT, format!("{row}, sent"), is_read.notified()).await;
            }
            let seen = wire.outcome(stream).await;
            let text = seen.text();
            let is_met = expected.iter().any(|expected| expected.is_met(&name, Some(&seen)));
            if !is_met || text.contains("evil-words") {
                let status = (seen.status, seen.ended, seen.reset, seen.body.len());
                wrong.push(format!("{row}: {status:?} {}", &text[..text.len().min(500)]));
            }
        }
        victim.goes_on(&mut wire, row).await;
    }
    // All other rows were between.
    for (row, name, stream, expected) in open {
        let seen = wire.seen(stream);
        assert!(expected.is_met(&name, seen), "{row}: {seen:?}");
        // CANCEL (RFC 9113 §7).
        assert!(wire.send(&encode(RST_STREAM, 0, stream, &[0, 0, 0, 8])).await, "{row}");
    }
    victim.goes_on(&mut wire, "the end of those that went on").await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// === impl Expected ===

impl Expected {
    /// Compares with what was `seen` of an answer of this cluster.
    fn is_met(self, cluster: &str, seen: Option<&Seen>) -> bool {
        let Some(seen) = seen else { return self == Self::Silence };
        let told = |code| seen.status == Some(code) && seen.text().contains(&format!("cluster {cluster}"));
        match self {
            Self::Refused => told(502),
            Self::Later => told(503),
            Self::Cut | Self::CutUnread => matches!(seen.status, Some(200) | None) && seen.reset.is_some(),
            Self::Answer(bytes) => seen.status == Some(200) && seen.ended && seen.body.len() == bytes,
            Self::Open(bytes) => seen.status == Some(200) && !seen.is_over() && seen.body.len() == bytes,
            Self::Silence => seen.status.is_none() && !seen.is_over() && seen.body.is_empty(),
        }
    }
}

fn name(number: usize) -> String {
    format!("evil-{number}")
}
