//! A SubjectAccessReview as the hub has it: what is asked, and the decision in its status.

use std::sync::Arc;

use api::access::{Attributes, ResourceAttributes, Verb};
use k8s_openapi::api::authorization::v1 as k8s;

use super::Subject;
use crate::review::Decision;

/// Only "allowed" allows: an evaluation error next to it changes nothing, but "denied" does.
pub(crate) fn decision(status: k8s::SubjectAccessReviewStatus) -> Decision {
    if status.allowed && status.denied != Some(true) {
        return Decision::Allowed;
    }
    Decision::Denied { reason: status.reason.unwrap_or_default().into() }
}

pub(super) fn spec(subject: &Subject) -> k8s::SubjectAccessReviewSpec {
    let user = &*subject.user;
    let mut spec = k8s::SubjectAccessReviewSpec {
        user: some(&user.name),
        uid: user.uid.as_deref().and_then(some),
        groups: (!user.groups.is_empty()).then(|| user.groups.clone()),
        extra: (!user.extra.is_empty()).then(|| user.extra.clone()),
        ..k8s::SubjectAccessReviewSpec::default()
    };
    match &subject.attributes {
        Attributes::Resource(resource) => spec.resource_attributes = Some(resource_attributes(resource)),
        Attributes::NonResource { path, verb } => {
            spec.non_resource_attributes = Some(k8s::NonResourceAttributes { path: some(path), verb: some(verb) });
        }
    }
    spec
}

/// Selectors are sent raw: the hub parses them by its own rules and ignores one that it cannot
/// parse. Then the request counts as unlimited, so the hub never allows more than without a
/// selector.
fn resource_attributes(resource: &ResourceAttributes) -> k8s::ResourceAttributes {
    let selectable = matches!(resource.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    let selector =
        |raw: &Option<Arc<str>>| raw.as_deref().filter(|raw| selectable && !raw.is_empty()).map(str::to_owned);
    k8s::ResourceAttributes {
        verb: some(resource.verb.as_str()),
        group: some(&resource.group),
        version: some(&resource.version),
        resource: some(&resource.resource),
        subresource: some(&resource.subresource),
        namespace: resource.namespace.as_deref().and_then(some),
        name: resource.name.as_deref().and_then(some),
        field_selector: selector(&resource.field_selector)
            .map(|raw| k8s::FieldSelectorAttributes { raw_selector: Some(raw), requirements: None }),
        label_selector: selector(&resource.label_selector)
            .map(|raw| k8s::LabelSelectorAttributes { raw_selector: Some(raw), requirements: None }),
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
