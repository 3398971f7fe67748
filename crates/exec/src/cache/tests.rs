//! When a plugin runs and when not. Time is paused. The plugin is a script of the test.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use kit::wait::Gate;
use secrecy::ExposeSecret as _;
use tokio::time::advance;

use super::*;
use crate::credential::Credential;
use crate::plugins::Standing;
use crate::testing::{config, request};

const SECOND: Duration = Duration::from_secs(1);

/// The result of the next run: a credential with a lifetime, or a failure.
#[derive(Clone)]
enum Next {
    Lives(u64),
    Endless,
    Fails,
    FindsNoPermit { slow: bool },
    Panics,
}

/// A runner that numbers its credentials.
#[derive(Default)]
struct Script {
    next: Mutex<VecDeque<Next>>,
    runs: Mutex<Vec<Standing>>,
    gate: Mutex<Option<Gate>>,
    given_up: Arc<Mutex<usize>>,
}

struct Fixture {
    script: Arc<Script>,
    credentials: Arc<Credentials>,
    observed: Arc<Mutex<Vec<bool>>>,
}

// === impl Script ===

impl Script {
    fn runs(&self) -> usize {
        self.runs.lock().len()
    }

    /// Runs wait here.
    fn close(&self) -> Gate {
        let gate = Gate::new();
        *self.gate.lock() = Some(gate.clone());
        gate
    }
}

impl Runner for Script {
    fn run(&self, _request: Arc<Request>, standing: Standing) -> BoxFuture<'_, Result<Issued, ExecError>> {
        struct GivenUp(Option<Arc<Mutex<usize>>>);
        impl GivenUp {
            fn not(mut self) {
                self.0 = None;
            }
        }
        impl Drop for GivenUp {
            fn drop(&mut self) {
                if let Some(count) = self.0.take() {
                    *count.lock() += 1;
                }
            }
        }
        self.runs.lock().push(standing);
        let (number, next) = (self.runs(), self.next.lock().pop_front().unwrap_or(Next::Endless));
        let gate = self.gate.lock().clone();
        let given_up = GivenUp(Some(self.given_up.clone()));
        async move {
            if let Some(gate) = gate {
                gate.passed().await;
            }
            given_up.not();
            let now = SystemTime::now();
            let expires = match next {
                Next::Lives(seconds) => Some(now + Duration::from_secs(seconds)),
                Next::Endless => None,
                Next::Fails => return Err(ExecError::NoStatus),
                Next::FindsNoPermit { slow } => return Err(ExecError::Busy { limit: 16, after: SECOND, slow }),
                Next::Panics => panic!("as the test wants it"),
            };
            let token = Some(format!("token-{number}").into());
            Ok(Issued::new(Credential { token, certificate: None, expires }, now))
        }
        .boxed()
    }
}

// === impl Fixture ===

impl Fixture {
    fn set(next: &[Next]) -> Self {
        let script = Arc::new(Script { next: Mutex::new(next.iter().cloned().collect()), ..Script::default() });
        let credentials = Credentials::new(Handle::current(), script.clone());
        Self { script, credentials, observed: Arc::default() }
    }

    fn source(&self, command: &str) -> Source {
        let observed = self.observed.clone();
        let observer: Observer = Arc::new(move |outcome| observed.lock().push(outcome.is_ok()));
        self.credentials.source(request(config(command, &[])), observer)
    }

    fn runs(&self) -> usize {
        self.script.runs()
    }
}

async fn token(source: &Source) -> Option<String> {
    source.get().await.ok().map(|issued| text(&issued))
}

fn text(issued: &Issued) -> String {
    issued.credential().token.as_ref().unwrap().expose_secret().to_owned()
}

/// Runs all tasks as far as they can go while time is paused.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_first_callers_share_one_run() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    let gate = fixture.script.close();
    let callers = join_all((0..100).map(|_| token(&source)));
    let (tokens, ()) = tokio::join!(callers, async {
        settle().await;
        gate.open();
    });
    assert!(tokens.iter().all(|token| token.as_deref() == Some("token-1")));
    assert_eq!((fixture.runs(), fixture.observed.lock().clone()), (1, vec![true]));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_does_not_end_the_run() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    let gate = fixture.script.close();
    assert!(source.get().now_or_never().is_none());
    gate.open();
    settle().await;
    assert_eq!(source.get().now_or_never().unwrap().map(|issued| text(&issued)).unwrap(), "token-1");
    assert_eq!(fixture.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_expiry_it_is_kept() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    for _ in 0..3 {
        assert_eq!(token(&source).await.as_deref(), Some("token-1"));
        advance(Duration::from_hours(24 * 30)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_before_the_end_the_next_is_issued_while_the_old_one_serves() {
    let fixture = Fixture::set(&[Next::Lives(600), Next::Lives(600)]);
    let source = fixture.source("plugin");
    assert_eq!(token(&source).await.as_deref(), Some("token-1"));
    advance(539 * SECOND).await;
    assert_eq!((token(&source).await.as_deref(), fixture.runs()), (Some("token-1"), 1));
    advance(2 * SECOND).await;
    let gate = fixture.script.close();
    for _ in 0..3 {
        assert_eq!(source.get().now_or_never().unwrap().map(|issued| text(&issued)).unwrap(), "token-1");
    }
    settle().await;
    gate.open();
    settle().await;
    assert_eq!((token(&source).await.as_deref(), fixture.runs()), (Some("token-2"), 2));
}

#[tokio::test(start_paused = true)]
async fn an_expired_one_is_not_served() {
    let fixture = Fixture::set(&[Next::Lives(600), Next::Fails, Next::Lives(600)]);
    let source = fixture.source("plugin");
    token(&source).await;
    advance(601 * SECOND).await;
    assert_eq!(token(&source).await, None);
    advance(2 * SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-3"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_of_no_concern_until_the_end() {
    let fixture = Fixture::set(&[Next::Lives(600), Next::Fails, Next::Lives(600)]);
    let source = fixture.source("plugin");
    token(&source).await;
    advance(550 * SECOND).await;
    for _ in 0..5 {
        assert_eq!(token(&source).await.as_deref(), Some("token-1"));
        settle().await;
    }
    assert_eq!(fixture.runs(), 2, "left alone for a second");
    advance(2 * SECOND).await;
    token(&source).await;
    settle().await;
    assert_eq!(token(&source).await.as_deref(), Some("token-3"));
}

#[tokio::test(start_paused = true)]
async fn short_lives_are_not_always_due_and_ended_ones_not_asked_for_each_time() {
    let fixture = Fixture::set(&[Next::Lives(10), Next::Lives(0), Next::Endless]);
    let source = fixture.source("plugin");
    token(&source).await;
    advance(7 * SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-1"));
    settle().await;
    assert_eq!(fixture.runs(), 1);
    advance(4 * SECOND).await;
    for _ in 0..10 {
        assert_eq!(token(&source).await.as_deref(), Some("token-2"));
    }
    assert_eq!(fixture.runs(), 2);
    advance(SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-3"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_plugin_is_asked_less_and_less() {
    let fixture = Fixture::set(&vec![Next::Fails; 100]);
    let source = fixture.source("plugin");
    let mut at = Vec::new();
    for second in 0..100 {
        let before = fixture.runs();
        for _ in 0..10 {
            let error = source.get().await.unwrap_err();
            assert_eq!(error.to_string(), "exec plugin didn't return a status field");
        }
        if fixture.runs() > before {
            at.push(second);
        }
        advance(SECOND).await;
    }
    assert_eq!(at, [0, 1, 3, 7, 15, 31, 61, 91]);
    let standings = fixture.script.runs.lock();
    assert!(standings[0] == Standing::New && standings[1..].iter().all(|one| *one == Standing::Suspect));
}

#[tokio::test(start_paused = true)]
async fn others_that_hang_make_no_plugin_a_suspect() {
    let fixture =
        Fixture::set(&[Next::FindsNoPermit { slow: false }, Next::FindsNoPermit { slow: true }, Next::Lives(10)]);
    let source = fixture.source("plugin");
    for _ in 0..2 {
        assert_eq!(token(&source).await, None);
        advance(SECOND).await;
    }
    assert_eq!(token(&source).await.as_deref(), Some("token-3"));
    advance(10 * SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-4"));
    // The result is remembered: there is only one first try.
    assert_eq!(*fixture.script.runs.lock(), [Standing::New, Standing::New, Standing::Slow, Standing::Proven]);
}

#[tokio::test(start_paused = true)]
async fn after_a_success_failures_are_counted_anew() {
    let fixture = Fixture::set(&[Next::Fails, Next::Fails, Next::Lives(10), Next::Fails, Next::Endless]);
    let source = fixture.source("plugin");
    token(&source).await;
    advance(SECOND).await;
    token(&source).await;
    advance(2 * SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-3"));
    advance(10 * SECOND).await;
    assert_eq!(token(&source).await, None);
    advance(SECOND).await;
    assert_eq!(token(&source).await.as_deref(), Some("token-5"));
    assert_eq!(*fixture.observed.lock(), [false, false, true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_one_is_renewed_once_for_all() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    let first = source.get().await.unwrap();
    let renewed = join_all((0..50).map(|_| source.renew(&first))).await;
    assert!(renewed.iter().all(|issued| text(issued.as_ref().unwrap().as_ref().unwrap()) == "token-2"));
    // A late rejection of the first credential gets the second.
    assert_eq!(source.renew(&first).await.unwrap().map(|issued| text(&issued)).unwrap(), "token-2");
    assert_eq!((token(&source).await.as_deref(), fixture.runs()), (Some("token-2"), 2));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_rejects_everything_is_believed_less_and_less() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    let mut at = Vec::new();
    for second in 0..100 {
        let before = fixture.runs().max(1);
        for _ in 0..10 {
            let issued = source.get().await.unwrap();
            source.renew(&issued).await.unwrap();
        }
        at.extend(std::iter::repeat_n(second, fixture.runs() - before));
        advance(SECOND).await;
    }
    assert_eq!(at, [0, 1, 3, 7, 15, 31, 61, 91]);
    advance(PROVEN_AND_MORE).await;
    let issued = source.get().await.unwrap();
    assert!(source.renew(&issued).await.unwrap().is_some());
    // That one had worked long enough, so its rejection counted as a first one.
    let issued = source.get().await.unwrap();
    assert!(source.renew(&issued).await.unwrap().is_none());
    advance(SECOND).await;
    assert!(source.renew(&issued).await.unwrap().is_some());
}

const PROVEN_AND_MORE: Duration = Duration::from_secs(61);

#[tokio::test(start_paused = true)]
async fn while_a_rejected_one_is_renewed_others_go_on_and_a_failure_keeps_it() {
    let fixture = Fixture::set(&[Next::Endless, Next::Fails]);
    let source = fixture.source("plugin");
    let first = source.get().await.unwrap();
    let gate = fixture.script.close();
    let (renewed, ()) = tokio::join!(source.renew(&first), async {
        settle().await;
        assert_eq!(token(&source).await.as_deref(), Some("token-1"));
        gate.open();
    });
    assert!(renewed.is_err());
    assert_eq!(token(&source).await.as_deref(), Some("token-1"));
    assert!(source.renew(&first).now_or_never().unwrap().is_err(), "at once, and without another run");
    assert_eq!(fixture.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn equal_requests_share_and_others_do_not() {
    let fixture = Fixture::set(&[]);
    let (one, same, other) = (fixture.source("plugin"), fixture.source("plugin"), fixture.source("other"));
    assert_eq!(token(&one).await.as_deref(), Some("token-1"));
    assert_eq!(token(&same).await.as_deref(), Some("token-1"));
    assert_eq!(token(&other).await.as_deref(), Some("token-2"));
    assert_eq!(fixture.credentials.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn with_its_last_user_a_credential_is_forgotten() {
    let fixture = Fixture::set(&[]);
    let (one, same) = (fixture.source("plugin"), fixture.source("plugin"));
    token(&one).await;
    drop(one);
    assert_eq!(token(&same).await.as_deref(), Some("token-1"));
    drop(same);
    assert!(fixture.credentials.is_empty());
    assert_eq!(token(&fixture.source("plugin")).await.as_deref(), Some("token-2"));
}

#[tokio::test(start_paused = true)]
async fn with_its_last_user_a_run_ends() {
    let fixture = Fixture::set(&[]);
    let source = fixture.source("plugin");
    let _gate = fixture.script.close();
    assert!(source.get().now_or_never().is_none());
    settle().await;
    drop(source);
    settle().await;
    assert_eq!((fixture.runs(), *fixture.script.given_up.lock()), (1, 1));
    assert!(fixture.credentials.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_lost_is_begun_anew() {
    let fixture = Fixture::set(&[Next::Panics]);
    let source = fixture.source("plugin");
    let error = source.get().await.unwrap_err();
    assert!(matches!(*error, ExecError::Ended));
    settle().await;
    assert_eq!(token(&source).await.as_deref(), Some("token-2"));
}
