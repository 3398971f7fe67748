//! Whether the gateway and the person have the rights that they need: access reviews on the hub.

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

/// Whether `user`, a ServiceAccount, has the right `need`.
pub async fn may(session: &Session, user: &str, need: &Need, namespace: &str) -> Result<bool> {
    let reviews = Api::<SubjectAccessReview>::all(session.hub().clone());
    let spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        groups: Some(vec!["system:authenticated".to_owned(), "system:serviceaccounts".to_owned()]),
        resource_attributes: Some(attributes(need, namespace)),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let review = session.within(reviews.create(&PostParams::default(), &review)).await?;
    Ok(review.status.is_some_and(|status| status.allowed))
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
