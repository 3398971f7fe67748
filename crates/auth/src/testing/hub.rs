//! A hub whose answers to reviews are scripted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::denied;
use crate::{ReviewError, Reviews};

type Judge = dyn Fn(&SubjectAccessReviewSpec) -> SubjectAccessReviewStatus + Send + Sync;

type HoldFilter = dyn Fn(&str) -> bool + Send + Sync;

/// A hub that answers from a script and records the reviews that it receives.
pub(crate) struct ScriptedHub {
    tokens: Mutex<BTreeMap<String, TokenReviewStatus>>,
    judge: Mutex<Arc<Judge>>,
    /// Failures of the next attempts, in order.
    failures: Mutex<VecDeque<ReviewError>>,
    /// Each attempt waits for a permit here, so a closed gate delays all answers.
    gate: Semaphore,
    /// Attempts about these tokens or users are never answered.
    held: Mutex<Arc<HoldFilter>>,
    /// Number of attempts that are waiting now.
    present: watch::Sender<usize>,
    token_attempts: watch::Sender<usize>,
    access_attempts: Mutex<Vec<SubjectAccessReviewSpec>>,
}

/// One attempt, until it is answered or abandoned.
struct PendingAttempt<'a>(&'a watch::Sender<usize>);

// === impl ScriptedHub ===

impl ScriptedHub {
    /// A hub that knows no token and allows nothing.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            tokens: Mutex::default(),
            judge: Mutex::new(Arc::new(|_| denied())),
            failures: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            held: Mutex::new(Arc::new(|_| false)),
            present: watch::Sender::new(0),
            token_attempts: watch::Sender::new(0),
            access_attempts: Mutex::default(),
        })
    }

    pub(crate) fn token(&self, token: &str, status: TokenReviewStatus) {
        self.tokens.lock().insert(token.to_owned(), status);
    }

    pub(crate) fn allow(&self, judge: impl Fn(&SubjectAccessReviewSpec) -> bool + Send + Sync + 'static) {
        self.judge(move |spec| SubjectAccessReviewStatus {
            allowed: judge(spec),
            ..SubjectAccessReviewStatus::default()
        });
    }

    pub(crate) fn judge(
        &self,
        judge: impl Fn(&SubjectAccessReviewSpec) -> SubjectAccessReviewStatus + Send + Sync + 'static,
    ) {
        *self.judge.lock() = Arc::new(judge);
    }

    pub(crate) fn fail_next(&self, errors: impl IntoIterator<Item = ReviewError>) {
        self.failures.lock().extend(errors);
    }

    /// Answers no attempts until [`Self::open`].
    pub(crate) fn close(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// From now on, never answers attempts about tokens or users for which `held` is true.
    pub(crate) fn hold(&self, held: impl Fn(&str) -> bool + Send + Sync + 'static) {
        *self.held.lock() = Arc::new(held);
    }

    pub(crate) fn present(&self) -> usize {
        *self.present.borrow()
    }

    /// Waits until exactly `count` attempts are waiting.
    pub(crate) async fn seen_present(&self, count: usize) {
        let mut present = self.present.subscribe();
        let seen = timeout(Duration::from_mins(1), present.wait_for(|present| *present == count)).await;
        seen.unwrap_or_else(|_| panic!("{} instead of {count}", self.present())).expect("the hub lives");
    }

    pub(crate) fn token_attempts(&self) -> usize {
        *self.token_attempts.borrow()
    }

    /// Waits until `count` token reviews have arrived.
    pub(crate) async fn seen_token_attempts(&self, count: usize) {
        let mut attempts = self.token_attempts.subscribe();
        attempts.wait_for(|seen| *seen >= count).await.expect("the hub lives");
    }

    pub(crate) fn access_attempts(&self) -> Vec<SubjectAccessReviewSpec> {
        self.access_attempts.lock().clone()
    }

    async fn pass<T>(&self, subject: &str, answer: impl FnOnce() -> T) -> Result<T, ReviewError> {
        let _visit = PendingAttempt::begin(&self.present);
        let held = self.held.lock()(subject);
        if held {
            std::future::pending::<()>().await;
        }
        drop(self.gate.acquire().await.expect("the gate is never closed for good"));
        match self.failures.lock().pop_front() {
            Some(error) => Err(error),
            None => Ok(answer()),
        }
    }
}

impl Reviews for ScriptedHub {
    fn token_review(&self, spec: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, ReviewError>> {
        Box::pin(async move {
            self.token_attempts.send_modify(|attempts| *attempts += 1);
            let token = spec.token.unwrap_or_default();
            self.pass(&token, || self.tokens.lock().get(&token).cloned().unwrap_or_default()).await
        })
    }

    fn subject_access_review(
        &self,
        spec: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, ReviewError>> {
        Box::pin(async move {
            self.access_attempts.lock().push(spec.clone());
            let judge = Arc::clone(&self.judge.lock());
            self.pass(spec.user.as_deref().unwrap_or_default(), || judge(&spec)).await
        })
    }
}

// === impl PendingAttempt ===

impl<'a> PendingAttempt<'a> {
    fn begin(present: &'a watch::Sender<usize>) -> Self {
        present.send_modify(|present| *present += 1);
        Self(present)
    }
}

impl Drop for PendingAttempt<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|present| *present -= 1);
    }
}
