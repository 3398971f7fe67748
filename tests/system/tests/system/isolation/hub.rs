//! The connection of a hub, with the watch of one of its users.

use kit::member::{FakeMember, StreamSender};
use system_tests::frames::{DATA, FrameClient};
use system_tests::{CLUSTER, Testbed, proxied};

pub struct Hub {
    pub client: FrameClient,
    watch: u32,
    events: StreamSender,
}

// === impl Hub ===

impl Hub {
    pub async fn connect(testbed: &Testbed, member: &FakeMember) -> Self {
        let mut streams = member.streams("/watch");
        let mut client = FrameClient::connect(testbed).await;
        let watch = client.request("GET", &proxied(CLUSTER, "/watch?watch=1"), true).await;
        let (_, events) = streams.next().await;
        Self { client, watch, events }
    }

    pub async fn assert_goes_on(&mut self) {
        self.client.settled().await;
        assert!(self.events.send("event\n").await, "the watch was given up");
        let watch = self.watch;
        let event = self.client.until("an event", |frame| (frame.kind, frame.stream) == (DATA, watch)).await;
        assert_eq!(event.payload, b"event\n");
    }
}
