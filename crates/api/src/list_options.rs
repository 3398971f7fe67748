//! The query parameters of a list that change what is returned.
//!
//! We return everything at once from memory, which the API rules allow: `limit` is ignored and no continue token is ever issued.
//! What asks for a consistency we cannot give is refused as `ValidateListOptions`
//! (`k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go`) words it, never ignored: a client that believes
//! it got an exact version, or that waits for initial events, goes wrong in silence.

use std::borrow::Cow;

use http::StatusCode;

use crate::query;
use crate::secret::ClusterSpec;
use crate::selector::field::{FieldSelector, InvalidFieldSelector};
use crate::selector::label::{InvalidLabelSelector, LabelSelector};
use crate::status::{Cause, Details, Reason, Status};

/// What a list returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    labels: LabelSelector,
    fields: FieldSelector,
}

/// Why a list is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidListOptions {
    #[error(transparent)]
    LabelSelector(#[from] InvalidLabelSelector),
    #[error(transparent)]
    FieldSelector(#[from] InvalidFieldSelector),
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    UnknownField(String),
    #[error("continue key is not valid: this server issues none")]
    Continue,
    #[error("invalid resource version: write a whole number")]
    ResourceVersion,
    /// 410, after which clients list anew without a version.
    #[error("The resourceVersion for the provided list is no longer available: exact versions are not kept.")]
    Exact,
    #[error("ListOptions.meta.k8s.io \"\" is invalid: {0}: {1}")]
    Invalid(&'static str, &'static str),
}

// === impl ListOptions ===

impl ListOptions {
    pub fn from_query(query: Option<&str>) -> Result<Self, InvalidListOptions> {
        check_consistency(query)?;
        let text = |key| query::first(query, key).unwrap_or_default();
        let labels = LabelSelector::parse(&text("labelSelector"))?;
        let fields = FieldSelector::parse(&text("fieldSelector"))?;
        if let Some(unknown) = fields.fields().find(|field| !matches!(*field, "metadata.name" | "metadata.namespace")) {
            return Err(InvalidListOptions::UnknownField(unknown.to_owned()));
        }
        Ok(Self { labels, fields })
    }

    /// Whether both selectors select the cluster.
    pub fn matches(&self, cluster: &ClusterSpec) -> bool {
        let field = |name: &str| if name == "metadata.name" { cluster.name.as_str() } else { "" };
        self.fields.matches(field) && self.labels.matches(&cluster.labels)
    }
}

fn check_consistency(query: Option<&str>) -> Result<(), InvalidListOptions> {
    const MATCH: &str = "resourceVersionMatch";
    let invalid = |field, message| Err(InvalidListOptions::Invalid(field, message));
    let text = |key| query::first(query, key).unwrap_or_default();
    let (version, wanted, token) = (text("resourceVersion"), text(MATCH), text("continue"));
    if query::first(query, "sendInitialEvents").is_some_and(|value| !value.is_empty()) {
        return invalid("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list");
    }
    if !wanted.is_empty() {
        if version.is_empty() {
            return invalid(MATCH, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !token.is_empty() {
            return invalid(MATCH, "Forbidden: resourceVersionMatch is forbidden when continue is provided");
        }
    }
    if !token.is_empty() {
        return Err(InvalidListOptions::Continue);
    }
    if !version.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidListOptions::ResourceVersion);
    }
    match &*wanted {
        "" | "NotOlderThan" => Ok(()),
        "Exact" if version == "0" => {
            invalid(MATCH, "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        "Exact" => Err(InvalidListOptions::Exact),
        _ => invalid(MATCH, "Unsupported value: supported values: \"Exact\", \"NotOlderThan\", \"\""),
    }
}

// === impl InvalidListOptions ===

impl From<InvalidListOptions> for Status {
    fn from(error: InvalidListOptions) -> Self {
        let message = error.to_string();
        match error {
            InvalidListOptions::Exact => Self::new(StatusCode::GONE, Reason::Expired, message),
            InvalidListOptions::Invalid(field, text) => {
                let unsupported = text.starts_with("Unsupported");
                let reason = if unsupported { "FieldValueNotSupported" } else { "FieldValueForbidden" };
                let cause = Cause { reason: reason.into(), message: text.into(), field: field.into() };
                let details = Details { group: "meta.k8s.io".into(), kind: "ListOptions".into(), ..Details::default() };
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message)
                    .with_details(Details { causes: vec![cause], ..details })
            }
            _ => Self::bad_request(Cow::Owned(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{certificate_cluster, token_cluster};

    fn selected(query: &str) -> Vec<String> {
        let options = ListOptions::from_query(Some(query)).expect("valid options");
        let clusters = [token_cluster("c1"), certificate_cluster("c2")];
        clusters.iter().filter(|cluster| options.matches(cluster)).map(|cluster| cluster.name.to_string()).collect()
    }

    #[test]
    fn selectors_choose_clusters() {
        let by_type = "labelSelector=cluster.core.oam.dev%2Fcluster-credential-type";
        for (query, expected) in [
            ("", &["c1", "c2"][..]),
            ("limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan", &["c1", "c2"]),
            ("fieldSelector=metadata.name%3Dc1", &["c1"]),
            ("fieldSelector=metadata.name!%3Dc1,metadata.namespace%3D", &["c2"]),
            ("fieldSelector=metadata.namespace%3Dx", &[]),
            (&format!("{by_type}%3DX509Certificate"), &["c2"]),
            (&format!("{by_type}%3DX509Certificate&fieldSelector=metadata.name%3Dc1"), &[]),
        ] {
            assert_eq!(selected(query), expected, "{query}");
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        let status = |query| Status::from(ListOptions::from_query(Some(query)).expect_err(query));
        let statuses = [
            status("labelSelector=a%20b"),
            status("fieldSelector=nonsense"),
            status("fieldSelector=spec.x%3D1"),
            status("continue=abc"),
            status("resourceVersion=abc"),
            status("resourceVersion=5&resourceVersionMatch=Exact"),
            status("resourceVersion=0&resourceVersionMatch=Exact"),
            status("resourceVersion=5&resourceVersionMatch=Other"),
            status("resourceVersionMatch=NotOlderThan"),
            status("resourceVersion=5&resourceVersionMatch=NotOlderThan&continue=abc"),
            status("sendInitialEvents=true"),
        ];
        let texts = statuses.iter().map(|status| String::from_utf8(status.to_json().to_vec()).expect("UTF-8"));
        insta::assert_snapshot!(texts.collect::<String>());
    }
}
