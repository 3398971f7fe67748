//! What of an object may be told in statuses.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};

use crate::fields::text;

/// `kubectl apply` keeps the whole object in it, with its data.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What is not secret in a `Secret`.
const OPEN: [&str; 5] = ["apiVersion", "kind", "type", "metadata", "status"];

/// The object; of a `Secret` what is not its data. Statuses are read by many who may not read the
/// member's Secrets.
pub fn visible(object: &Json) -> Cow<'_, Json> {
    if (text(object, "/apiVersion"), text(object, "/kind")) != ("v1", "Secret") {
        return Cow::Borrowed(object);
    }
    let fields = OPEN.iter().filter_map(|name| Some(((*name).to_owned(), object.get(name)?.clone())));
    let mut open = Json::Object(fields.collect::<Map<_, _>>());
    if let Some(Json::Object(annotations)) = open.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    Cow::Owned(open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_data_of_secrets_is_not_visible() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "b"},
            "metadata": {"name": "n", "annotations": {LAST_APPLIED: "{\"data\": {}}", "a": "b"}}});
        let open = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "n", "annotations": {"a": "b"}}});
        assert_eq!(*visible(&secret), open);
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        assert_eq!(*visible(&other), other);
    }
}
