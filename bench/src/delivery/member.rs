//! Objects of one scripted member: they are written and read, and watched.

use std::collections::HashMap;

use bytes::Bytes;
use http::StatusCode;
use kit::merge::merge;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Objects of one kind in one namespace.
#[derive(Default)]
struct Collection {
    objects: HashMap<String, Kept>,
    watches: Vec<UnboundedSender<Bytes>>,
}

/// One object, as it is sent.
struct Kept {
    uid: u64,
    version: u64,
    text: Bytes,
}

/// Objects by the path of their collection.
#[derive(Default)]
pub struct Member {
    collections: HashMap<String, Collection>,
    /// Version of the last write.
    version: u64,
}

/// The answer to a request.
pub type Answered = (StatusCode, Bytes);

// === impl Member ===

impl Member {
    pub fn get(&self, collection: &str, name: &str) -> Answered {
        match self.kept(collection, name) {
            Some(kept) => (StatusCode::OK, kept.text.clone()),
            None => refuse(StatusCode::NOT_FOUND),
        }
    }

    /// Names and versions of all.
    pub fn list(&self, collection: &str) -> Answered {
        let objects = self.collections.get(collection).into_iter().flat_map(|known| &known.objects);
        let items: Vec<Value> = objects.map(|(name, kept)| metadata(name, kept.version)).collect();
        let version = self.version.to_string();
        answer(&json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version}, "items": items}))
    }

    /// Lines of the changes from now on. The member keeps no past: between a list and the watch a
    /// moment later nothing changes, unless another client writes.
    pub fn watch(&mut self, collection: &str) -> UnboundedReceiver<Bytes> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let watches = &mut self.collections.entry(collection.to_owned()).or_default().watches;
        watches.retain(|watch| !watch.is_closed());
        watches.push(sender);
        receiver
    }

    /// Ends all watches.
    pub fn end_watches(&mut self) {
        for collection in self.collections.values_mut() {
            collection.watches.clear();
        }
    }

    pub fn create(&mut self, collection: &str, body: &[u8]) -> Answered {
        let Ok(object) = serde_json::from_slice::<Value>(body) else { return refuse(StatusCode::BAD_REQUEST) };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.kept(collection, &name).is_some() {
            return refuse(StatusCode::CONFLICT);
        }
        let (_, text) = self.write(collection, &name, object, "ADDED");
        (StatusCode::CREATED, text)
    }

    pub fn replace(&mut self, collection: &str, name: &str, body: &[u8]) -> Answered {
        let Ok(object) = serde_json::from_slice::<Value>(body) else { return refuse(StatusCode::BAD_REQUEST) };
        let Some(kept) = self.kept(collection, name) else { return refuse(StatusCode::NOT_FOUND) };
        if !is_of(&object, kept.version) {
            return refuse(StatusCode::CONFLICT);
        }
        self.write(collection, name, object, "MODIFIED")
    }

    /// A JSON merge patch (RFC 7396).
    pub fn merge(&mut self, collection: &str, name: &str, body: &[u8]) -> Answered {
        let Some(kept) = self.kept(collection, name) else { return refuse(StatusCode::NOT_FOUND) };
        let (Ok(patch), Ok(mut object)) = (serde_json::from_slice::<Value>(body), serde_json::from_slice(&kept.text))
        else {
            return refuse(StatusCode::BAD_REQUEST);
        };
        if !is_of(&patch, kept.version) {
            return refuse(StatusCode::CONFLICT);
        }
        merge(&mut object, patch);
        self.write(collection, name, object, "MODIFIED")
    }

    pub fn delete(&mut self, collection: &str, name: &str) -> Answered {
        let Some(known) = self.collections.get_mut(collection) else { return refuse(StatusCode::NOT_FOUND) };
        if known.objects.remove(name).is_none() {
            return refuse(StatusCode::NOT_FOUND);
        }
        self.version += 1;
        known.tell("DELETED", name, self.version);
        answer(&json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
    }

    fn kept(&self, collection: &str, name: &str) -> Option<&Kept> {
        self.collections.get(collection)?.objects.get(name)
    }

    fn write(&mut self, collection: &str, name: &str, mut object: Value, event: &str) -> Answered {
        self.version += 1;
        let uid = self.kept(collection, name).map_or(self.version, |kept| kept.uid);
        object["metadata"]["uid"] = format!("00000000-0000-0000-0000-{uid:012}").into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let text = Bytes::from(object.to_string());
        let known = self.collections.entry(collection.to_owned()).or_default();
        known.objects.insert(name.to_owned(), Kept { uid, version: self.version, text: text.clone() });
        known.tell(event, name, self.version);
        (StatusCode::OK, text)
    }
}

// === impl Collection ===

impl Collection {
    fn tell(&mut self, event: &str, name: &str, version: u64) {
        let line = Bytes::from(format!("{}\n", json!({"type": event, "object": metadata(name, version)})));
        self.watches.retain(|watch| watch.send(line.clone()).is_ok());
    }
}

/// Whether the sent object was made from that version, or names none.
fn is_of(sent: &Value, version: u64) -> bool {
    sent["metadata"]["resourceVersion"].as_str().is_none_or(|sent| sent == version.to_string())
}

fn metadata(name: &str, version: u64) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": name, "resourceVersion": version.to_string()}})
}

pub fn answer(value: &Value) -> Answered {
    (StatusCode::OK, value.to_string().into())
}

/// A refusal with a Status, as API servers send it.
pub fn refuse(code: StatusCode) -> Answered {
    let reason = match code {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        _ => "BadRequest",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": reason, "code": code.as_u16()});
    (code, status.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn read(answered: &Answered) -> Value {
        serde_json::from_slice(&answered.1).unwrap()
    }

    #[test]
    fn what_is_written_is_read_listed_and_told() {
        let mut member = Member::default();
        assert_eq!(member.get(MAPS, "a").0, StatusCode::NOT_FOUND);
        let made = member.create(MAPS, br#"{"metadata":{"name":"a"},"data":{"k":"1"}}"#);
        assert_eq!(made.0, StatusCode::CREATED);
        assert_eq!(member.create(MAPS, br#"{"metadata":{"name":"a"}}"#).0, StatusCode::CONFLICT);
        let mut watch = member.watch(MAPS);
        let mut object = read(&made);
        object["data"]["k"] = "2".into();
        let sent = object.to_string();
        assert_eq!(member.replace(MAPS, "a", sent.as_bytes()).0, StatusCode::OK);
        assert_eq!(member.replace(MAPS, "a", sent.as_bytes()).0, StatusCode::CONFLICT, "made from an older one");
        assert_eq!(read(&member.merge(MAPS, "a", br#"{"data":{"k":null,"l":"3"}}"#))["data"], json!({"l": "3"}));
        let now = read(&member.get(MAPS, "a"));
        assert_eq!(now["metadata"]["uid"], object["metadata"]["uid"]);
        let list = read(&member.list(MAPS));
        assert_eq!(list["items"][0]["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
        assert_eq!(list["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
        assert_eq!(member.delete(MAPS, "a").0, StatusCode::OK);
        let mut lines = Vec::new();
        while let Ok(line) = watch.try_recv() {
            lines.push(serde_json::from_slice::<Value>(&line).unwrap()["type"].clone());
        }
        assert_eq!(lines, ["MODIFIED", "MODIFIED", "DELETED"]);
        member.end_watches();
        assert!(watch.is_closed(), "the watch has ended");
    }
}
