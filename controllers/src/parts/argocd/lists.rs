//! Lists of metadata alone, page by page, as the hub has it and not a cache of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use crate::parts::hub::{CallError, Hub};

/// Of one answer.
const PAGE: u32 = 500;

/// Of all objects that `chosen` chooses.
pub async fn metadata<K>(hub: &Hub, api: &Api<K>, chosen: ListParams) -> Result<Vec<ObjectMeta>, CallError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (mut all, mut parameters) = (Vec::new(), chosen.limit(PAGE));
    loop {
        let page = hub.read(api.list_metadata(&parameters)).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        all.extend(page.items.into_iter().map(|object| object.metadata));
        match next {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(all),
        }
    }
}
