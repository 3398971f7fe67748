//! What every cluster is to have: our finalizer, a set, and the hub's taints.

use kube::Api;
use kube::api::DynamicObject;
use register::ocm::leaving::FINALIZER;
use register::ocm::standing::Standing;
use register::ocm::{DEFAULT_SET, SET_LABEL, taints};
use serde_json::{Map, Value, json};

use super::hub_calls::{CallError, LeaderClient, now_text, value};
use crate::calls::NOT_FOUND;

/// Bytes of a cluster, as JSON, up to which it is corrected with its acceptance. One beyond may be
/// too large to be corrected at all.
const SMALL: usize = 16 << 10;

/// Of one cluster.
pub struct Corrections<'a> {
    pub hub: &'a LeaderClient,
    pub api: &'a Api<DynamicObject>,
    pub name: &'a str,
}

// === impl Corrections ===

impl Corrections<'_> {
    /// Adds what is missing by one patch. Also returns why the hub refuses it: a person's decision
    /// does not wait for that, since an agent, or a policy, may cause it.
    pub async fn write(&self, cluster: Value, standing: Standing) -> Result<(Value, Option<String>), CallError> {
        let (metadata, taints) = (missing(&cluster, standing), taints::corrected(&cluster, &now_text()));
        if taints.is_none() || metadata.is_empty() {
            return self.change(cluster, metadata, taints).await;
        }
        let (cluster, refused) = self.change(cluster, metadata.clone(), taints.clone()).await?;
        if refused.is_none() {
            return Ok((cluster, None));
        }
        // The hub may refuse either alone: the agent writes taints as well, and a policy may guard
        // labels and finalizers.
        let (cluster, of_metadata) = self.change(cluster, metadata, None).await?;
        let (cluster, of_taints) = self.change(cluster, Map::new(), taints).await?;
        Ok((cluster, of_metadata.or(of_taints).or(refused)))
    }

    /// Makes a `change` that accepts the `cluster`, and by the same patch what
    /// [`Corrections::write`] would make right after it: each patch is checked by admission, and is
    /// an event for all who watch. Where the hub refuses both, the acceptance does not wait for the
    /// rest.
    pub async fn write_with(&self, cluster: &Value, change: &Value) -> Result<Value, CallError> {
        let whole = if cluster.to_string().len() > SMALL { change.clone() } else { corrected(cluster, change) };
        let changed = match self.hub.merge(self.api, self.name, &whole).await {
            Err(error) if concerns_contents(&error) && whole != *change => {
                self.hub.merge(self.api, self.name, change).await
            }
            answer => answer,
        };
        changed.map(|changed| value(&changed))
    }

    async fn change(
        &self,
        cluster: Value,
        metadata: Map<String, Value>,
        taints: Option<Vec<Value>>,
    ) -> Result<(Value, Option<String>), CallError> {
        if metadata.is_empty() && taints.is_none() {
            return Ok((cluster, None));
        }
        let what = match (metadata.is_empty(), taints.is_some()) {
            (false, true) => "finalizer, set or taints",
            (false, false) => "finalizer or set",
            (true, _) => "taints",
        };
        let mut change = json!({"metadata": metadata});
        change["metadata"]["resourceVersion"] = cluster["metadata"]["resourceVersion"].clone();
        if let Some(taints) = taints {
            change["spec"]["taints"] = taints.into();
        }
        match self.hub.merge(self.api, self.name, &change).await {
            Ok(changed) => Ok((value(&changed), None)),
            Err(error) if concerns_contents(&error) => Ok((cluster, Some(unwritten(what, &error)))),
            Err(error) => Err(error),
        }
    }
}

/// Whether another change of the cluster may succeed.
fn concerns_contents(error: &CallError) -> bool {
    !(error.is_conflict() || error.is(NOT_FOUND) || error.concerns_all())
}

/// A `change` that accepts `cluster`, with what is missing then.
fn corrected(cluster: &Value, change: &Value) -> Value {
    let mut whole = change.clone();
    for (field, value) in missing(cluster, Standing::Accepted) {
        whole["metadata"][field] = value;
    }
    if let Some(taints) = taints::corrected(cluster, &now_text()) {
        whole["spec"]["taints"] = taints.into();
    }
    whole
}

/// Why `what` of a cluster is not written, and what to do if the hub takes no larger object.
pub fn unwritten(what: &str, error: &CallError) -> String {
    let remedy = if error.is_too_large() { "; make it smaller" } else { "" };
    format!("cannot write its {what}: {error}{remedy}")
}

/// What of a cluster's metadata is to be added.
fn missing(cluster: &Value, standing: Standing) -> Map<String, Value> {
    let mut metadata = Map::new();
    let finalizers = cluster["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if standing == Standing::Accepted && !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        let all: Vec<Value> = finalizers.into_iter().chain([FINALIZER.into()]).collect();
        metadata.insert("finalizers".to_owned(), all.into());
    }
    let set = cluster["metadata"]["labels"].get(SET_LABEL).and_then(Value::as_str).unwrap_or_default();
    if set.is_empty() {
        metadata.insert("labels".to_owned(), json!({SET_LABEL: DEFAULT_SET}));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::hub_calls::managed_clusters;
    use crate::scripted;

    /// A hub that answers changes of the `guarded` field with `code`, and takes others.
    fn hub(guarded: &'static str, code: u16) -> LeaderClient {
        LeaderClient::scripted(move |_, mut change| {
            if change.pointer(guarded).is_some() {
                return Some(scripted::status(code, "Invalid", "not here"));
            }
            change["metadata"]["name"] = "c1".into();
            Some((200, change))
        })
    }

    async fn written(guarded: &'static str, code: u16) -> Result<(Value, Option<String>), CallError> {
        let hub = hub(guarded, code);
        let api = Api::all_with(hub.client.clone(), &managed_clusters());
        let cluster = json!({"metadata": {"name": "c1", "resourceVersion": "7"}, "spec": {"hubAcceptsClient": true}});
        Corrections { hub: &hub, api: &api, name: "c1" }.write(cluster, Standing::Accepted).await
    }

    #[tokio::test]
    async fn what_the_hub_refuses_of_taints_keeps_nothing_else_from_being_written() {
        let (cluster, refused) = written("/spec/taints", 422).await.unwrap();
        assert_eq!(cluster["metadata"]["finalizers"], json!([FINALIZER]));
        assert_eq!(cluster["metadata"]["labels"][SET_LABEL], DEFAULT_SET);
        let refused = refused.unwrap();
        assert!(refused.contains("its taints") && refused.contains("not here"), "{refused}");
        // What says nothing of the cluster is tried again before anything else.
        for code in [409, 404, 500, 429] {
            assert!(written("/spec/taints", code).await.is_err(), "{code}");
        }
    }

    #[tokio::test]
    async fn what_the_hub_refuses_of_metadata_keeps_no_taint_from_being_written() {
        let (cluster, refused) = written("/metadata/finalizers", 422).await.unwrap();
        assert!(cluster["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty()), "{cluster}");
        let refused = refused.unwrap();
        assert!(refused.contains("its finalizer or set") && refused.contains("not here"), "{refused}");
    }

    /// What an acceptance of a cluster with an annotation of so many bytes writes.
    async fn accepted(guarded: &'static str, code: u16, bytes: usize) -> Result<Value, CallError> {
        let hub = hub(guarded, code);
        let api = Api::all_with(hub.client.clone(), &managed_clusters());
        let cluster = json!({"metadata": {"name": "c1", "annotations": {"a": "x".repeat(bytes)}}});
        let change = json!({"metadata": {"resourceVersion": "7"}, "spec": {"hubAcceptsClient": true}});
        Corrections { hub: &hub, api: &api, name: "c1" }.write_with(&cluster, &change).await
    }

    #[tokio::test]
    async fn an_acceptance_brings_what_is_missing_by_the_same_write() {
        let cluster = accepted("/nothing", 500, 1).await.unwrap();
        assert_eq!(cluster["metadata"]["finalizers"], json!([FINALIZER]));
        assert_eq!(cluster["metadata"]["labels"][SET_LABEL], DEFAULT_SET);
        assert_eq!(cluster["spec"]["hubAcceptsClient"], true);
        assert!(cluster["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty()), "{cluster}");
    }

    #[tokio::test]
    async fn an_acceptance_does_not_wait_for_what_is_missing() {
        for (guarded, code, bytes) in
            [("/spec/taints", 422, 1), ("/metadata/finalizers", 403, 1), ("/spec/taints", 409, SMALL)]
        {
            let cluster = accepted(guarded, code, bytes).await.unwrap();
            assert_eq!(cluster["spec"], json!({"hubAcceptsClient": true}), "{guarded}");
            assert!(cluster["metadata"]["finalizers"].is_null(), "{guarded}");
        }
        for code in [409, 404, 500, 429] {
            assert!(accepted("/spec/taints", code, 1).await.is_err(), "{code}");
        }
    }
}
