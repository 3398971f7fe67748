//! An upload that the member does not read, and a member that cannot be reached, hold back no other
//! request.

use kit::member::BlackHole;
use system_tests::prelude::*;

use super::{QUIET, SOON, assert_others_are_served};

across_versions!(a_stalled_upload_holds_nobody_back);
across_http!(a_member_that_cannot_be_reached_holds_no_other_back);

async fn a_stalled_upload_holds_nobody_back(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/never", |_| Reply::Never);
    member.on("/small", |_| Reply::json(200, &json!({})));
    let testbed = Testbed::with(&member).await;
    let target = proxied(CLUSTER, "/never");
    match versions.client {
        Http::H1 => {
            let mut connection = testbed.connect(Http::H1).await;
            let mut stalled = connection.upload("POST", &target, &[]).await.expect("sent");
            stalled.fill(QUIET).await.expect("open");
            assert_others_are_served(&testbed, None).await;
        }
        Http::H2 => {
            let connection = testbed.connect(Http::H2).await;
            let mut stalled = Vec::new();
            for _ in 0..3 {
                let mut upload = connection.upload_beside("POST", &target).await.expect("sent");
                upload.fill(QUIET).await.expect("open");
                stalled.push(upload);
            }
            let mut upload = connection.upload_beside("POST", &proxied(CLUSTER, "/small")).await.expect("sent");
            upload.send(vec![0; 100]).await.expect("taken");
            let answer = within(SOON, "an answer on the same connection", upload.answer()).await.expect("an answer");
            assert_eq!(answer.status, 200);
            assert_others_are_served(&testbed, Some(&connection)).await;
        }
    }
}

async fn a_member_that_cannot_be_reached_holds_no_other_back(client: Http) {
    let hole = BlackHole::start().await;
    let member = Http::H2.member().await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let url = format!("https://{}", hole.address());
    let lost = ClusterSecret::new("vela-system", "lost").endpoint(&url).ca(&member.ca_pem()).token(MEMBER_TOKEN);
    let testbed = Testbed::builder().cluster("lost", lost).cluster(CLUSTER, cluster(CLUSTER, &member)).start().await;
    let mut waiting = testbed.connect(client).await;
    let target = proxied("lost", "/x");
    let asking = waiting.open("GET", &target, &[]);
    tokio::select! {
        answer = asking => panic!("answered: {answer:?}"),
        () = assert_others_are_served(&testbed, None) => {},
    }
}
