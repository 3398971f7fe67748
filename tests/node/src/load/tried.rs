//! One request, judged and repeated as client-go does (k8s.io/client-go, `rest/request.go` and
//! `rest/with_retry.go`): any request, where the answer has a `Retry-After`; a read, also where its
//! connection broke.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use chaos_tests::caller::{Caller, Failure};
use chaos_tests::conclusion::Answer;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::sleep;

use super::Shared;

/// Repetitions, as in client-go (`maxRetries`).
const REPETITIONS: u32 = 10;
/// Pause of client-go where the answer gives no time, or one second.
const AGAIN: Duration = Duration::from_secs(1);

/// How a request failed.
pub(super) enum Failed {
    /// A client repeats the request by itself.
    Again(String),
    Finally(String),
}

/// A request to send.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Bytes,
}

// === impl Asked ===

impl<'a> Asked<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: Bytes::new() }
    }

    /// Sends the request until an answer satisfies `is_it`. `None`: a client would have got an
    /// error, which is recorded as a failure of the load.
    pub(super) async fn ask(
        &self,
        shared: &Shared,
        caller: &Caller,
        is_it: impl Fn(&Answer) -> bool,
    ) -> Option<Answer> {
        self.ask_again(shared, caller, |answer, _| is_it(answer)).await
    }

    /// Like [`Self::ask`], where an answer may also be valid because an earlier try took effect
    /// (`true` for a repetition).
    pub(super) async fn ask_again(
        &self,
        shared: &Shared,
        caller: &Caller,
        is_it: impl Fn(&Answer, bool) -> bool,
    ) -> Option<Answer> {
        let mut last = String::new();
        for number in 0..=REPETITIONS {
            match self.once(caller, |answer| is_it(answer, number > 0)).await {
                Ok(answer) => return Some(answer),
                Err(Failed::Finally(what)) => {
                    shared.wrong(format!("{} {}: {what}", self.method, self.path));
                    return None;
                }
                Err(Failed::Again(what)) => last = what,
            }
            shared.repeated.fetch_add(1, Ordering::Relaxed);
            sleep(AGAIN).await;
        }
        shared.wrong(format!("{} {}: {REPETITIONS} repetitions failed: {last}", self.method, self.path));
        None
    }

    async fn once(&self, caller: &Caller, is_it: impl Fn(&Answer) -> bool) -> Result<Answer, Failed> {
        let answer = caller.whole(self.method.clone(), self.path, self.body.clone()).await;
        let answer = answer.map_err(|failure| unanswered(&self.method, failure))?;
        if is_it(&answer) {
            return Ok(answer);
        }
        let text = String::from_utf8_lossy(&answer.body);
        let what = format!("{} {}", answer.status, text.chars().take(600).collect::<String>());
        Err(refused(answer.status, &answer.headers, what))
    }
}

/// How a request without an answer failed.
pub(super) fn unanswered(method: &Method, failure: Failure) -> Failed {
    match failure {
        Failure::Broken(what) if *method == Method::GET => Failed::Again(what),
        Failure::Broken(what) | Failure::NotSent(what) => Failed::Finally(what),
    }
}

/// How a request with an unexpected answer failed.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, what: String) -> Failed {
    let may_again = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if may_again && headers.contains_key(RETRY_AFTER) { Failed::Again(what) } else { Failed::Finally(what) }
}
