//! The rights of a work's executor, by reviews on the member, without impersonation.

use delivery::executor::{self, Escalation, Executor, Review, Role, rules_of};
use delivery::identity::{Identity, Tracked};
use delivery::manifests::Manifest;
use delivery::strategy::Strategy;
use serde_json::Value as Json;

use super::member::{At, MemberError};
use super::target::Target;

// === impl Target ===

impl Target {
    /// Reviews the rights needed to process an object. Returns a refusal as the text to report.
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

    /// Reviews the right to remove an object. Returns a refusal as the text to report.
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

    /// Prevents escalation: an executor must not grant rights that it does not have.
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
            Err(refused) => return Ok(Err(refused.report(&identity))),
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
                    Err(refused) => return Ok(Err(refused.report(&identity))),
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
        // A name in a manifest may be invalid in a path.
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
