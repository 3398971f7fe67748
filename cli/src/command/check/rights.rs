//! Whether the programs on the hub and the person may do what they need to: reviews on the hub.

use futures_util::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};

use super::unseen;
use crate::findings::Finding;
use crate::needs::{self, Need, OF_PERSON};
use crate::session::Session;
use crate::trouble::Result;

/// Findings about the person's own rights.
pub async fn own(session: &Session, namespace: &str) -> Vec<Finding> {
    let reviews = Api::<SelfSubjectAccessReview>::all(session.hub().clone());
    let asked = OF_PERSON.iter().map(|need| {
        let reviews = &reviews;
        async move {
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes(need, namespace)),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = session.within(reviews.create(&PostParams::default(), &review)).await;
            match answer {
                Ok(review) => needs::right("you", need, namespace, review.status.is_some_and(|status| status.allowed)),
                Err(trouble) => unseen("your rights", &trouble),
            }
        }
    });
    join_all(asked).await
}

/// The ServiceAccount of a program.
pub struct Account<'a> {
    /// What people call the program.
    pub who: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

// === impl Account ===

impl Account<'_> {
    /// Whether it may do what it needs to; `clusters` is their namespace.
    pub async fn rights(&self, session: &Session, needs: &[Need], clusters: &str) -> Vec<Finding> {
        let asked = needs.iter().map(|need| async move { (need, self.may(session, need, clusters).await) });
        let mut found = Vec::new();
        for (need, allowed) in join_all(asked).await {
            match allowed {
                Ok(allowed) => found.push(needs::right(self.who, need, clusters, allowed)),
                Err(trouble) => {
                    found.push(unseen(&format!("the rights of {}", self.who), &trouble));
                    break;
                }
            }
        }
        found
    }

    async fn may(&self, session: &Session, need: &Need, clusters: &str) -> Result<bool> {
        let Self { namespace, name, .. } = self;
        let groups = ["system:authenticated", "system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        let spec = SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{name}")),
            groups: Some(groups.map(str::to_owned).to_vec()),
            resource_attributes: Some(attributes(need, clusters)),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(session.hub().clone());
        let review = session.within(reviews.create(&PostParams::default(), &review)).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

fn attributes(need: &Need, namespace: &str) -> ResourceAttributes {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ResourceAttributes {
        verb: text(need.verb),
        group: text(need.group),
        resource: text(need.resource),
        subresource: text(need.subresource),
        namespace: Some(namespace.to_owned()).filter(|_| need.namespaced),
        ..ResourceAttributes::default()
    }
}
