use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;
use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The cache, and how often it asked.
#[derive(Default)]
struct Asked {
    rights: Arc<Rights>,
    times: Arc<AtomicUsize>,
}

// === impl Asked ===

impl Asked {
    /// Whether the group `g` is known, if `answer` is the response to a question.
    async fn has_group(&self, answer: impl Into<Option<Impersonable>>) -> bool {
        let answer = answer.into();
        let times = Arc::clone(&self.times);
        let ask = async move || {
            times.fetch_add(1, Ordering::Relaxed);
            answer
        };
        let has = self.rights.get(&Handle::current(), ask).await.has_group("g");
        // Lets a question in the background finish.
        yield_now().await;
        has
    }

    fn held(&self) -> Arc<Impersonable> {
        self.rights.0.lock().known.as_ref().expect("something is known").held()
    }

    /// The member refuses a request made with the current answer.
    fn refuse(&self) -> Option<Arc<Impersonable>> {
        self.rights.refused(&self.held())
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }
}

fn nobody(is_incomplete: bool) -> Impersonable {
    listed("", is_incomplete)
}

/// A list with a rule about the group `name`.
fn only(name: &str, is_incomplete: bool) -> Impersonable {
    let rule = r#"{"verbs":["impersonate"],"apiGroups":[""],"resources":["groups"],"resourceNames":["NAME"]}"#;
    listed(&rule.replace("NAME", name), is_incomplete)
}

fn listed(rules: &str, is_incomplete: bool) -> Impersonable {
    let status = format!(r#"{{"resourceRules":[{rules}],"incomplete":{is_incomplete}}}"#);
    let review = format!(r#"{{"kind":"SelfSubjectRulesReview","status":{status}}}"#);
    Impersonable::parse(review.as_bytes()).expect("a review")
}

fn everybody() -> Impersonable {
    Impersonable::everything()
}

#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_minutes_and_is_renewed_before_anybody_waits_for_it() {
    let asked = Asked::default();
    assert!(!asked.has_group(nobody(false)).await);
    advance(AGED.saturating_sub(SECOND)).await;
    assert!(!asked.has_group(everybody()).await);
    assert_eq!(asked.times(), 1);
    advance(SECOND).await;
    assert!(!asked.has_group(everybody()).await, "what is known is used while it is asked");
    assert_eq!(asked.times(), 2);
    assert!(asked.has_group(nobody(false)).await, "and what was learnt by the next");
    assert_eq!(asked.times(), 2);
    advance(KEPT).await;
    assert!(!asked.has_group(nobody(false)).await, "nobody asked meanwhile: it is waited for");
    assert_eq!(asked.times(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_learnt_is_asked_again_after_a_pause() {
    let asked = Asked::default();
    assert!(asked.has_group(None).await, "nothing is left out");
    advance(PAUSE.saturating_sub(SECOND)).await;
    assert!(asked.has_group(nobody(false)).await);
    assert_eq!(asked.times(), 1);
    advance(SECOND).await;
    assert!(!asked.has_group(nobody(false)).await);
    assert_eq!(asked.times(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_what_the_list_allows_has_it_asked_again_and_not_too_often() {
    let asked = Asked::default();
    assert!(asked.has_group(everybody()).await);
    for _ in 0..100 {
        assert_eq!(asked.refuse(), None, "there is nothing narrower to send");
        assert!(asked.has_group(nobody(false)).await);
    }
    assert_eq!(asked.times(), 1);
    advance(PAUSE).await;
    assert!(!asked.has_group(nobody(false)).await);
    assert_eq!(asked.times(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_complete_is_believed_once_somebody_was_refused() {
    let asked = Asked::default();
    assert!(asked.has_group(nobody(true)).await, "others may allow it");
    let before = asked.held();
    let narrower = asked.refuse().expect("the list itself");
    assert!(!narrower.has_group("g"));
    // Refusals of requests made with an earlier answer do not change the current one. They get it.
    assert_eq!(asked.rights.refused(&before), Some(narrower));
    assert!(!asked.has_group(nobody(true)).await);
    assert_eq!(asked.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_refusal_showed_holds_as_long_as_the_list_is_equal() {
    let asked = Asked::default();
    assert!(asked.has_group(only("h", true)).await);
    asked.refuse();
    for _ in 0..3 {
        advance(KEPT).await;
        assert!(!asked.has_group(only("h", true)).await, "the same list, the same result");
    }
    // Also after a question without a result.
    advance(KEPT).await;
    assert!(asked.has_group(None).await);
    advance(PAUSE).await;
    assert!(!asked.has_group(only("h", true)).await);
    advance(KEPT).await;
    assert!(asked.has_group(only("other", true)).await, "another list, another try");
    assert_eq!(asked.times(), 7);
}
