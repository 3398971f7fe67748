//! What a work's executor may do, asked on the member. Nobody is impersonated.

use std::collections::HashMap;
use std::time::Duration;

use delivery::executor::{self, Escalation, Executor, Review, Role, rules_of};
use delivery::identity::{Identity, Tracked};
use delivery::manifests::Manifest;
use delivery::strategy::Strategy;
use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::member::{At, MemberError};
use super::place::Place;

/// An answer counts for so long: a right that is granted, or taken, counts after that.
const FRESH: Duration = Duration::from_secs(30);
/// Bytes of answers that are kept of one member, as [`bytes`] counts them.
const MOST: usize = 4 << 20;
/// Of one work.
const MOST_OF_WORK: usize = 1 << 20;
/// Of one answer, beside its texts.
const ANSWER: usize = 256;

/// Of one member, by work: none takes another's place.
#[derive(Default)]
pub struct Verdicts(Mutex<HashMap<String, OfWork>>);

/// By user and review.
#[derive(Default)]
struct OfWork {
    answers: HashMap<(String, Review), (Instant, bool)>,
    bytes: usize,
}

// === impl Place ===

impl Place {
    /// What has to be allowed before an object is looked at. A refusal is what is told.
    pub async fn review(
        &self,
        work: &str,
        executor: &Executor,
        manifest: &Manifest,
        is_owned: bool,
        strategy: &Strategy,
    ) -> Result<Result<(), String>, MemberError> {
        let identity = manifest.identity();
        for review in executor::reviews(&identity, &manifest.version, is_owned, strategy) {
            if !self.allowed(work, executor, &review).await? {
                let verb = match &review {
                    Review::Resource { verb, .. } | Review::Url { verb, .. } => verb,
                };
                let (user, refusal) = (executor.user(), executor::refusal(&identity));
                return Ok(Err(format!("{refusal}: {user} may not {verb} it")));
            }
        }
        Ok(Ok(()))
    }

    /// What has to be allowed before an object is taken away. A refusal is what is told.
    pub async fn review_removal(
        &self,
        work: &str,
        executor: &Executor,
        tracked: &Tracked,
    ) -> Result<Result<(), String>, MemberError> {
        let review = executor::removal(&tracked.identity, &tracked.version);
        let is_allowed = self.allowed(work, executor, &review).await?;
        let refused = || format!("{} may not delete it: grant that, or name another executor", executor.user());
        Ok(if is_allowed { Ok(()) } else { Err(refused()) })
    }

    /// Nobody gives what they do not have.
    pub async fn review_escalation(
        &self,
        work: &str,
        executor: &Executor,
        manifest: &Manifest,
        object: &Json,
        observed: Option<&Json>,
        strategy: &Strategy,
    ) -> Result<Result<(), String>, MemberError> {
        let identity = manifest.identity();
        let escalation = match executor::escalation(&identity, object, observed, strategy) {
            Ok(escalation) => escalation,
            Err(refused) => return Ok(Err(refused.told(&identity))),
        };
        let (enough, each) = match escalation {
            Escalation::None => return Ok(Ok(())),
            Escalation::Rules { enough, each } => (enough, each),
            Escalation::Binding { enough, role } => {
                if self.allowed(work, executor, &enough).await? {
                    return Ok(Ok(()));
                }
                let Some(object) = self.role(&role).await? else {
                    return Ok(Err(format!(
                        "{}, error: the role {} is not there",
                        executor::refusal(&identity),
                        role.name
                    )));
                };
                match rules_of(&object, &role.namespace) {
                    Ok(each) => (enough, each),
                    Err(refused) => return Ok(Err(refused.told(&identity))),
                }
            }
        };
        if self.allowed(work, executor, &enough).await? {
            return Ok(Ok(()));
        }
        for review in &each {
            if !self.allowed(work, executor, review).await? {
                return Ok(Err(executor::escalated(&identity)));
            }
        }
        Ok(Ok(()))
    }

    async fn role(&self, role: &Role) -> Result<Option<Json>, MemberError> {
        let (resource, namespace) =
            if role.is_cluster_wide { ("clusterroles", "") } else { ("roles", role.namespace.as_str()) };
        let identity = Identity {
            group: "rbac.authorization.k8s.io".to_owned(),
            resource: resource.to_owned(),
            name: role.name.clone(),
            namespace: namespace.to_owned(),
        };
        // What a manifest names may be no part of a path.
        if identity.check("v1").is_err() {
            return Ok(None);
        }
        self.member.get(At { identity: &identity, version: "v1" }).await
    }

    async fn allowed(&self, work: &str, executor: &Executor, review: &Review) -> Result<bool, MemberError> {
        let key = (executor.user(), review.clone());
        if let Some(known) = self.verdicts.known(work, &key) {
            return Ok(known);
        }
        let is_allowed = self.member.review(&executor.review(review)).await?;
        self.verdicts.put(work, key, is_allowed);
        Ok(is_allowed)
    }
}

// === impl Verdicts ===

impl Verdicts {
    fn known(&self, work: &str, key: &(String, Review)) -> Option<bool> {
        let works = self.0.lock();
        let (asked, verdict) = works.get(work)?.answers.get(key)?;
        (asked.elapsed() < FRESH).then_some(*verdict)
    }

    /// What does not fit is asked for again: of a work that has many, or else of the one that has
    /// most.
    fn put(&self, work: &str, key: (String, Review), verdict: bool) {
        let mut works = self.0.lock();
        let own = works.entry(work.to_owned()).or_default();
        if own.bytes.saturating_add(bytes(&key)) > MOST_OF_WORK {
            own.clear();
        }
        own.put(key, verdict);
        if sum(&works) <= MOST {
            return;
        }
        works.retain(|_, one| {
            one.forget_stale();
            !one.answers.is_empty()
        });
        while sum(&works) > MOST {
            let most = works.iter().max_by_key(|(_, one)| one.bytes).map(|(work, _)| work.clone());
            let Some(most) = most else { return };
            works.remove(&most);
        }
    }

    /// A work is gone.
    pub fn forget(&self, work: &str) {
        self.0.lock().remove(work);
    }
}

// === impl OfWork ===

impl OfWork {
    fn put(&mut self, key: (String, Review), verdict: bool) {
        let size = bytes(&key);
        if self.answers.insert(key, (Instant::now(), verdict)).is_none() {
            self.bytes += size;
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn forget_stale(&mut self) {
        self.answers.retain(|_, (asked, _)| asked.elapsed() < FRESH);
        self.bytes = self.answers.keys().map(bytes).sum();
    }
}

fn sum(works: &HashMap<String, OfWork>) -> usize {
    works.values().map(|one| one.bytes).sum()
}

/// What an answer takes, and some.
fn bytes((user, review): &(String, Review)) -> usize {
    let texts = match review {
        Review::Resource { verb, group, version, resource, subresource, namespace, name } => {
            [verb, group, version, resource, subresource, namespace, name].into_iter().map(String::len).sum()
        }
        Review::Url { verb, path } => verb.len() + path.len(),
    };
    ANSWER + user.len() + texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> (String, Review) {
        ("user".to_owned(), Review::Url { verb: "get".to_owned(), path: path.to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_work_that_asks_much_pushes_nobody_elses_answers_out() {
        let verdicts = Verdicts::default();
        verdicts.put("small", key("/a"), true);
        let long = "x".repeat(10_000);
        for work in 0..20 {
            for number in 0..200 {
                verdicts.put(&format!("large-{work}"), key(&format!("/{number}/{long}")), false);
            }
        }
        assert_eq!(verdicts.known("small", &key("/a")), Some(true));
        assert_eq!(verdicts.known("large-0", &key("/a")), None, "what is known of another is none of its business");
        assert!(sum(&verdicts.0.lock()) <= MOST);
        assert!(verdicts.0.lock().values().all(|one| one.bytes <= MOST_OF_WORK));
        tokio::time::advance(FRESH).await;
        assert_eq!(verdicts.known("small", &key("/a")), None, "a right may have been taken");
    }
}
