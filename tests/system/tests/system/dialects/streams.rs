//! Watches, cancels and long bodies, as on the native path. `streaming` has early answers.

use kit::member::Ending;
use system_tests::prelude::*;

use super::{Fixture, deliver_each};

across_dialects!(
    a_watch_delivers_each_event_and_lasts,
    leaving_cancels_at_once,
    a_long_body_arrives_whole_and_so_do_trailers,
);

async fn a_watch_delivers_each_event_and_lasts(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut streams = fixture.member.streams("/api/v1/pods");
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        let target = fixture.path("/api/v1/pods?watch=true");
        let mut watch = connection.open("GET", &target, &[]).await.expect("a head");
        let (_, stream) = streams.next().await;
        deliver_each(&stream, &mut watch).await;
        drop(stream);
        assert_eq!(watch.line().await.expect("a clean end"), None);
    }
}

async fn leaving_cancels_at_once(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut streams = fixture.member.streams("/x");
    fixture.member.on("/never", |_| Reply::Never);
    for client in [Http::H1, Http::H2] {
        let mut connection = fixture.connect(client).await;
        let target = fixture.path("/x?watch=true");
        let watch = connection.open("GET", &target, &[]).await.expect("a head");
        let (request, stream) = streams.next().await;
        drop(watch);
        drop(connection);
        stream.gone().await;
        assert_eq!(request.ended().await.0, Ending::Cancelled);
    }
    let mut connection = fixture.connect(Http::H2).await;
    let target = fixture.path("/never");
    {
        let waiting = connection.open("GET", &target, &[]);
        let asked = async { while fixture.member.next_request().await.path() != "/never" {} };
        tokio::select! {
            answer = waiting => panic!("answered: {answer:?}"),
            () = asked => {}
        }
    }
    drop(connection);
    while fixture.member.cancelled().await.path() != "/never" {}
}

async fn a_long_body_arrives_whole_and_so_do_trailers(dialect: Dialect) {
    let fixture = Fixture::set(dialect).await;
    let mut streams = fixture.member.streams("/x");
    let mut connection = fixture.connect(Http::H2).await;
    let target = fixture.path("/x");
    let mut upload = connection.upload("POST", &target, &[]).await.expect("sent");
    upload.send(vec![7; 1 << 20]).await.expect("taken");
    let (answer, ()) = tokio::join!(upload.answer(), async {
        let (request, stream) = streams.next().await;
        request.body_reached(1 << 20).await;
        assert!(stream.send("taken").await);
        assert!(stream.trailers(&[("x-checksum", "abc")]).await);
    });
    let answer = answer.expect("a whole answer");
    assert_eq!((answer.text().as_str(), &answer.trailers["x-checksum"]), ("taken", &"abc".parse().unwrap()));
}
