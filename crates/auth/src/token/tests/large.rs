//! Answers about users with many groups are kept within bounds of memory.

use super::*;

fn with_groups(name: &str, count: usize) -> TokenReviewStatus {
    let groups: Vec<_> = (0..count).map(|number| format!("{number:04}")).collect();
    authenticated(name, &groups.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn whoever_has_too_many_groups_is_reviewed_each_time() {
    let hub = ScriptedHub::new();
    hub.token("many", with_groups("many", 900));
    hub.token("too-many", with_groups("too-many", 9000));
    let auth = auth(&hub);
    for (token, reviews) in [("many", 1), ("too-many", 4)] {
        for _ in 0..3 {
            assert!(is_user(&ask(&auth, token).await), "{token}");
        }
        assert_eq!(hub.token_attempts(), reviews, "{token}");
    }
}

/// An issuer may put into each token what its user likes.
#[tokio::test(start_paused = true)]
async fn large_answers_about_one_user_push_out_each_other_by_their_memory() {
    let hub = ScriptedHub::new();
    hub.token("good", authenticated("u", &[]));
    for number in 0..400 {
        hub.token(&format!("mallory{number}"), with_groups("mallory", 900));
    }
    let auth = auth(&hub);
    assert!(is_user(&ask(&auth, "good").await));
    for number in 0..400 {
        assert!(is_user(&ask(&auth, &format!("mallory{number}")).await));
    }
    for (token, more) in [("good", 0), ("mallory399", 0), ("mallory300", 0), ("mallory200", 1), ("mallory0", 1)] {
        let asked = hub.token_attempts();
        assert!(is_user(&ask(&auth, token).await));
        assert_eq!(hub.token_attempts(), asked + more, "{token}");
    }
}
