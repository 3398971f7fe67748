//! Links that are replaced at the server's request or for a new credential, and the effect on
//! streams.

use std::time::Duration;

use crate::fixture::{Fixture, echo, echoes, open, ready};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_asked_to_leave_goes_when_there_is_another() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &["--links=1", &format!("--allow={address}")]);
    ready(&agent);
    let (first, old) = server.linked(1).await.remove(0);
    let mut stream = open(&old, &address.to_string()).await.unwrap();
    old.leave().await;
    let (second, new) = server.until("another link", |server| server.links().pop()).await;
    assert_ne!(first.link, second.link, "the old one is not taken for lost");
    echoes(&mut stream, b"still there").await;
    echoes(&mut open(&new, &address.to_string()).await.unwrap(), b"and here").await;
    drop(stream);
    kit::wait::within(kit::wait::WAIT, "the end of the old link", old.ended()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_is_replaced_by_one_that_stays() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.server(&["one"]).await, fixture.server(&["two"]).await);
    let agent = fixture.agent(&[&one, &two], &["--links=1"]);
    ready(&agent);
    let (_, leaving) = one.linked(1).await.remove(0);
    two.linked(1).await;
    one.refuse(Some((http::StatusCode::SERVICE_UNAVAILABLE, None)));
    leaving.leave().await;
    // There is another server: nothing to wait for.
    kit::wait::within(Duration::from_secs(5), "the end of the link", leaving.ended()).await;
    assert_eq!(two.links().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_makes_new_links_and_cuts_no_stream() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &["--links=2", &format!("--allow={address}")]);
    ready(&agent);
    let (_, old) = server.linked(2).await.remove(0);
    let mut stream = open(&old, &address.to_string()).await.unwrap();
    fixture.write_token("second");
    server
        .until("two links with the new token", |server| {
            let links = server.links();
            let new = links.iter().filter(|(seen, _)| seen.authorization.as_deref() == Some("Bearer second")).count();
            (new == 2 && links.len() == 2).then_some(())
        })
        .await;
    echoes(&mut stream, b"undisturbed").await;
    let numbers: Vec<_> = server.links().into_iter().map(|(seen, _)| seen.link).collect();
    let before: Vec<_> = server.seen().iter().take(2).map(|seen| seen.link).collect();
    assert!(
        numbers.iter().all(|number| before.contains(number)),
        "each in its predecessor's place: {numbers:?} {before:?}"
    );
}
