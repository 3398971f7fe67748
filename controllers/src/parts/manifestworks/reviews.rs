//! What a work's executor may do, asked on the member. Nobody is impersonated.

use std::collections::HashMap;
use std::time::Duration;

use delivery::executor::{self, Escalation, Executor, Review, Role, rules_of};
use delivery::identity::Identity;
use delivery::manifests::Manifest;
use delivery::strategy::Strategy;
use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::member::{At, MemberError};
use super::place::Place;

/// An answer counts for so long: a right that is granted, or taken, counts after that.
const FRESH: Duration = Duration::from_secs(30);
/// Answers that are kept of one member.
const MOST: usize = 4096;

/// By user and review.
#[derive(Default)]
pub struct Verdicts(Mutex<HashMap<(String, Review), (Instant, bool)>>);

// === impl Place ===

impl Place {
    /// What has to be allowed before an object is looked at. A refusal is what is told.
    pub async fn review(
        &self,
        executor: &Executor,
        manifest: &Manifest,
        is_owned: bool,
        strategy: &Strategy,
    ) -> Result<Result<(), String>, MemberError> {
        let identity = manifest.identity();
        for review in executor::reviews(&identity, &manifest.version, is_owned, strategy) {
            if !self.allowed(executor, &review).await? {
                let verb = match &review {
                    Review::Resource { verb, .. } | Review::Url { verb, .. } => verb,
                };
                let (user, refusal) = (executor.user(), executor::refusal(&identity));
                return Ok(Err(format!("{refusal}: {user} may not {verb} it")));
            }
        }
        Ok(Ok(()))
    }

    /// Nobody gives what they do not have.
    pub async fn review_escalation(
        &self,
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
                if self.allowed(executor, &enough).await? {
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
        if self.allowed(executor, &enough).await? {
            return Ok(Ok(()));
        }
        for review in &each {
            if !self.allowed(executor, review).await? {
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

    async fn allowed(&self, executor: &Executor, review: &Review) -> Result<bool, MemberError> {
        let key = (executor.user(), review.clone());
        if let Some(known) = self.verdicts.known(&key) {
            return Ok(known);
        }
        let is_allowed = self.member.review(&executor.review(review)).await?;
        self.verdicts.put(key, is_allowed);
        Ok(is_allowed)
    }
}

// === impl Verdicts ===

impl Verdicts {
    fn known(&self, key: &(String, Review)) -> Option<bool> {
        self.0.lock().get(key).filter(|(asked, _)| asked.elapsed() < FRESH).map(|(_, verdict)| *verdict)
    }

    fn put(&self, key: (String, Review), verdict: bool) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.retain(|_, (asked, _)| asked.elapsed() < FRESH);
            if known.len() >= MOST {
                known.clear();
            }
        }
        known.insert(key, (Instant::now(), verdict));
    }
}
