//! Attacks of members: on the gateway, and on the hub's connection, on which their answers travel
//! beside those of other members.

mod http1;
mod http2;

use system_tests::prelude::*;

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
    /// An answer with this body.
    Answer(usize),
    /// Nothing yet; who does not wait loses nothing.
    Silence,
}

/// Asks each of these clusters in turn, beside a victim of another.
async fn beside_a_victim(hub: FakeHub, rows: &[(&str, ClusterSecret, &[Expected])]) {
    for (_, secret, _) in rows {
        hub.put_secret(secret.clone());
    }
    let fixture = Fixture::with(hub, &[]).await;
    let mut wire = fixture.shared("victim").await;
    let mut victim = Victim::begin(&mut wire, &fixture).await;
    let mut wrong = Vec::new();
    for (number, (row, _, expected)) in rows.iter().enumerate() {
        let name = name(number);
        let stream = wire.request("GET", &proxied(&name, "/x"), &[], true).await;
        if expected == &[Expected::Silence] {
            assert!(wire.is_alive().await);
        } else {
            let seen = wire.outcome(stream).await;
            let text = seen.text();
            let told = |code| seen.status == Some(code) && text.contains(&format!("cluster {name}"));
            let is = |expected: &Expected| match *expected {
                Expected::Refused => told(502),
                Expected::Later => told(503),
                Expected::Cut => matches!(seen.status, Some(200) | None) && seen.reset.is_some(),
                Expected::Answer(bytes) => seen.status == Some(200) && seen.ended && seen.body.len() == bytes,
                Expected::Silence => false,
            };
            let status = (seen.status, seen.ended, seen.reset, seen.body.len());
            if !expected.iter().any(is) || text.contains("evil-words") {
                wrong.push(format!("{row}: {status:?} {}", &text[..text.len().min(500)]));
            }
        }
        victim.goes_on(&mut wire, row).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn name(number: usize) -> String {
    format!("evil-{number}")
}
