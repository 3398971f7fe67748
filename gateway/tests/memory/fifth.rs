//! The well-behaved user.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use kit::client::Client;
use kit::member::{FakeMember, MemberOptions, Reply, Streams};
use kit::wait::{WAIT, becomes, within};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::STUCK;

/// Address of no attacker.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
const FIFTH: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/fifth/proxy";

/// It has a member of its own, on a thread of its own: its waits are not to depend on how busy the
/// attackers are.
pub struct Fifth {
    pub url: String,
    pub ca: String,
    pub start: oneshot::Sender<Client>,
    pub answers: Arc<AtomicU64>,
    pub is_over: Arc<AtomicBool>,
    /// Ends with the waits of each turn, for the event and for the answer.
    pub thread: JoinHandle<Vec<[Duration; 2]>>,
}

// === impl Fifth ===

impl Fifth {
    pub fn prepare() -> Self {
        let ((where_, found), (start, started)) = (mpsc::channel(), oneshot::channel());
        let answers = Arc::<AtomicU64>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (counted, ends) = (Arc::clone(&answers), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let member = FakeMember::start(MemberOptions::default()).await;
                member.on("/small", |_| Reply::full(200, &[], "small"));
                where_.send((member.url(), member.ca_pem())).expect("the test goes on");
                let Ok(client) = started.await else { return Vec::new() };
                Self::go_on(client, member.streams("/api/v1/pods"), &counted, &ends).await
            })
        });
        let (url, ca) = found.recv().expect("the member starts");
        Self { url, ca, start, answers, is_over, thread }
    }

    /// Gets and watches until all is over; a late answer is a failure.
    async fn go_on(
        client: Client,
        mut watches: Streams,
        answers: &AtomicU64,
        is_over: &AtomicBool,
    ) -> Vec<[Duration; 2]> {
        let client = client.from_address(ADDRESS);
        let connection = client.h2().await.expect("a connection");
        let headers = [("authorization", "Bearer fifth")];
        let (small, watch) = (format!("{FIFTH}/small"), format!("{FIFTH}/api/v1/pods?watch=true"));
        let is_there = async || connection.get(&small, &headers).await.is_ok_and(|head| head.status() == 200);
        becomes(WAIT, "a member", is_there).await;
        let mut watch = connection.get(&watch, &headers).await.expect("a head").body;
        let (_, events) = watches.next().await;
        let mut waited = Vec::new();
        for number in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let sent = Instant::now();
            let event = format!("{number:>20}\n");
            assert!(events.send(event.clone()).await, "the watch was ended");
            let mut line = Vec::new();
            while line.len() < event.len() {
                let piece = within(STUCK, "an event", watch.chunk()).await;
                let Some(Ok(piece)) = piece else { panic!("the watch ended: {piece:?}") };
                line.extend_from_slice(&piece);
            }
            assert_eq!(line, event.into_bytes());
            let seen = Instant::now();
            // Every tenth on a connection of its own: new connections get in as well.
            let anew = if number % 10 == 9 { Some(client.h2().await.expect("a new connection")) } else { None };
            let answer = async {
                let answer = anew.as_ref().unwrap_or(&connection).get(&small, &headers).await.expect("a head");
                (answer.status(), answer.text().await.expect("a body"))
            };
            assert_eq!(within(STUCK, "an answer", answer).await, (200, "small".to_owned()));
            waited.push([seen - sent, seen.elapsed()]);
            answers.fetch_add(1, Ordering::Relaxed);
        }
        waited
    }
}
