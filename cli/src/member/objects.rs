//! Objects of any kind on a member: those of a chart.

use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, TypeMeta};
use kube::discovery::{Scope, pinned_kind};
use serde_json::Value;

use super::{MANAGER, Member};
use crate::claim::Claim;
use crate::trouble::{Result, Trouble};

// === impl Member ===

impl Member {
    /// Creates or corrects an object, and puts `claim` on it. Refuses an object of that name that
    /// belongs to another.
    pub async fn apply_any(&self, claim: &Claim, document: &Value) -> Result<()> {
        let objects = self.objects(document).await?;
        self.refuse_object(&objects, claim, document).await?;
        let mut document = document.clone();
        claim.put_on(&mut document);
        let params = PatchParams::apply(MANAGER).force();
        self.ask(objects.patch(&text(&document["metadata"]["name"]), &params, &Patch::Apply(&document))).await.map(drop)
    }

    /// Refuses objects that exist and belong to another, before anything is created. An object of a
    /// kind that the member does not have does not exist.
    pub async fn refuse_objects(&self, claim: &Claim, documents: impl IntoIterator<Item = &Value>) -> Result<()> {
        for document in documents {
            if let Ok(objects) = self.objects(document).await {
                self.refuse_object(&objects, claim, document).await?;
            }
        }
        Ok(())
    }

    async fn refuse_object(&self, objects: &Api<DynamicObject>, claim: &Claim, document: &Value) -> Result<()> {
        let name = text(&document["metadata"]["name"]);
        match self.ask(objects.get_opt(&name)).await? {
            Some(found) if !claim.is_named_by(&found) => Err(foreign(document, &name)),
            _ => Ok(()),
        }
    }

    async fn objects(&self, document: &Value) -> Result<Api<DynamicObject>> {
        let kind = TypeMeta { api_version: text(&document["apiVersion"]), kind: text(&document["kind"]) };
        let kind = GroupVersionKind::try_from(&kind)
            .map_err(|_| Trouble::failed("a manifest has no apiVersion", "see the chart"))?;
        let known = self.ask(pinned_kind(&self.client, &kind)).await;
        let (resource, capabilities) = known.map_err(|trouble| {
            if !trouble.what.contains("404") {
                return trouble;
            }
            let what = format!("member: it has no {} in {}", kind.kind, kind.api_version());
            Trouble::failed(what, "choose another chart or other values, so that the member supports all its kinds")
        })?;
        let namespace = text(&document["metadata"]["namespace"]);
        Ok(match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn foreign(document: &Value, name: &str) -> Trouble {
    let (kind, namespace) = (text(&document["kind"]), text(&document["metadata"]["namespace"]));
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    Trouble::usage(
        format!("member: the {kind} {place} exists, and was not created for this cluster of this hub"),
        "choose another --account-namespace for this cluster's agents, or remove it (`helm uninstall`, `kubectl \
         clusters detach` of the other cluster)",
    )
}
