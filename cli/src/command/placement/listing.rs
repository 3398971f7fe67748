//! What is listed from the hub for a decision: objects by kind, and what is said about a kind that
//! is not there.

use fleet::{Failure, Kind};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use placement::objects::GROUP;
use placement::prepared::Prepared;
use serde_json::Value;

use crate::output;
use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// The decisions of all namespaces count. A user that may list only those of this namespace gets a
/// message that says what follows.
pub(super) async fn decisions(session: &Session, placement: &Prepared) -> Result<Vec<Value>> {
    match all(session, "v1beta1", "PlacementDecision", "").await {
        Err(trouble) if trouble.is_forbidden() => {
            output::say("you may not list the decisions of all namespaces: Balance counts those of this one only");
            all(session, "v1beta1", "PlacementDecision", &placement.namespace).await
        }
        answer => answer,
    }
}

/// Reads scores only if the placement may use them. A user that may not list them gets a message,
/// and the choice is computed without them. A hub may lack the kind.
pub(super) async fn scores(session: &Session, placement: &Prepared) -> Result<Vec<Value>> {
    if !placement.has_expressions() && placement.score_resources().next().is_none() {
        return Ok(Vec::new());
    }
    let listed = list(session, "v1alpha1", "AddOnPlacementScore", "").await;
    match listed {
        Err(failure) if failure.kind == Kind::Plain(404) => Ok(Vec::new()),
        Err(failure) if failure.kind == Kind::Answered(403) => {
            output::say("you may not list addonplacementscores: this is computed as if there were none");
            Ok(Vec::new())
        }
        answer => answer.map_err(|failure| unlisted(failure, "AddOnPlacementScore")),
    }
}

/// Lists the objects of `namespace`, or of all namespaces if it is empty.
pub(super) async fn all(session: &Session, version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
    list(session, version, kind, namespace).await.map_err(|failure| unlisted(failure, kind))
}

async fn list(
    session: &Session,
    version: &str,
    kind: &str,
    namespace: &str,
) -> std::result::Result<Vec<Value>, Failure> {
    let (client, of) = (session.hub().clone(), resource(version, kind));
    let api: Api<DynamicObject> =
        if namespace.is_empty() { Api::all_with(client, &of) } else { Api::namespaced_with(client, namespace, &of) };
    let asked = async { api.list(&ListParams::default()).await.map_err(Failure::from) };
    Ok(session.bounded(asked).await?.items.into_iter().map(value).collect())
}

pub(super) fn resource(version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, version, kind), &plural)
}

/// Keeps the metadata: a Placement's generation and a cluster's labels count.
pub(super) fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

fn unlisted(failure: Failure, kind: &str) -> Trouble {
    if failure.kind == Kind::Plain(404) {
        return no_kind(kind);
    }
    let is_forbidden = failure.kind == Kind::Answered(403);
    let trouble = Trouble::from(failure).when(format_args!("cannot list {kind}s"));
    if !is_forbidden {
        return trouble;
    }
    let plural = kind.to_lowercase();
    trouble.remedied(format!(
        "ask for the verb list on {plural}s ({GROUP}), or have someone with that right run this command"
    ))
}

pub(super) fn absent(failure: Failure, name: &str) -> Trouble {
    let kind = failure.kind;
    let trouble = Trouble::from(failure).when(format_args!("cannot read Placement {name}"));
    match kind {
        Kind::Plain(404) => no_kind("Placement"),
        Kind::Answered(404) => trouble.remedied("`kubectl get placements -A` lists them"),
        Kind::Answered(403) => trouble.remedied(format!("ask for the verb get on placements ({GROUP})")),
        _ => trouble,
    }
}

fn no_kind(kind: &str) -> Trouble {
    let what = format!("this hub has no {kind}s ({GROUP})");
    let remedy = "choose the hub with --context, or install the kinds: the gateway's chart brings them with \
                  controllers.parts.placement=true";
    Trouble::failed(what, remedy)
}
