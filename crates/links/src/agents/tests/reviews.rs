//! A hub on a bad day: whatever it answers to reviews, nobody is linked by it, agents are told that
//! it is the hub, and links stay.

use kit::hub::review_faults;

use super::*;

async fn beside_a_link(call: Call, mut faults: Vec<(&'static str, Fault)>, token: impl Fn(usize) -> String) {
    let fixture = Fixture::with_hub().await;
    fixture.hub().allow_all();
    for name in ["linked", "another"] {
        fixture.hub().add_token(name, TokenUser::new(name, &[]));
    }
    let _agent = fixture.link("east", None, Some("linked")).await;
    drop(fixture.apply("known", None, Some("another")).await.unwrap());
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    faults.push(("silence", Fault::Hang));
    for (number, (row, fault)) in faults.into_iter().enumerate() {
        fixture.hub().fail(call, fault);
        let cluster = format!("stranger-{number}");
        let (status, message, retry_after) = fixture.refused(&cluster, None, Some(&token(number))).await;
        assert_eq!((status, retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_secs(5))), "{row}");
        assert!(message.contains("the hub could not review this agent"), "{row}: {message}");
        assert!(!fixture.agents.registry().is_linked(&name(&cluster)), "{row}");
        // The link was looked at meanwhile, and more than once.
        echoes(&mut stream).await;
    }
    fixture.metric_becomes("tunnel_server_links{cluster=\"east\"} 1").await;
}

#[tokio::test]
async fn whatever_a_token_review_says_nobody_is_linked_and_links_stay() {
    let faults = review_faults("authentication", "TokenReview", "SubjectAccessReview");
    Box::pin(beside_a_link(Call::TokenReview, faults, |number| format!("unknown-{number}"))).await;
}

#[tokio::test]
async fn whatever_an_access_review_says_nobody_is_linked_and_links_stay() {
    let faults = review_faults("authorization", "SubjectAccessReview", "TokenReview");
    Box::pin(beside_a_link(Call::AccessReview, faults, |_| "another".to_owned())).await;
}
