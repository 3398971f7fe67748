//! The documents of a gateway beside a Karmada: the gateway's own, plus what the server that served
//! Karmada's group before says about that group. A hub reads both groups from one address.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::accept::{self, DiscoveryForm};
use crate::discovery::{self, Document};
use crate::karmada::GROUP;
use crate::openapi;
use crate::route::{Discovery, SharedDocument};

const JSON: &str = "application/json";
const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The fields of `/apis` that we need, in either form. All others are copied verbatim.
#[derive(Deserialize)]
struct Groups<'a> {
    #[serde(borrow, default)]
    groups: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// A group in either form.
#[derive(Deserialize)]
struct Group<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

/// The document `/openapi/v3`.
#[derive(Deserialize)]
struct Root<'a> {
    #[serde(borrow)]
    paths: BTreeMap<Cow<'a, str>, PathEntry<'a>>,
}

#[derive(Deserialize)]
struct PathEntry<'a> {
    #[serde(borrow, rename = "serverRelativeURL")]
    server_relative_url: &'a RawValue,
}

/// The media type in which to ask the other server for `document`, for a client that sends these
/// headers.
pub fn accepted(document: SharedDocument, headers: &HeaderMap) -> HeaderValue {
    HeaderValue::from_static(match (document, accept::discovery(headers)) {
        (SharedDocument::Groups, DiscoveryForm::AggregatedV2) => V2,
        (SharedDocument::Groups, DiscoveryForm::Plain) | (SharedDocument::OpenApiRoot, _) => JSON,
    })
}

/// The complete response to a GET. `None` if `theirs`, the other server's document, does not
/// contain the group.
pub fn respond(document: SharedDocument, theirs: &[u8], headers: &HeaderMap) -> Option<Response<Bytes>> {
    let (body, kept) = match document {
        SharedDocument::Groups => {
            let ours = &discovery::document(Discovery::Groups, headers).body;
            (joined(ours, &[group(theirs)?.get()], "]}\n")?, "public")
        }
        SharedDocument::OpenApiRoot => {
            let places = places(theirs)?;
            let places: Vec<_> = places.iter().map(String::as_str).collect();
            (joined(openapi::own_root(), &places, "}}\n")?, openapi::KEPT)
        }
    };
    let document = Document::new(body, accepted(document, headers));
    Some(document.answer(headers, HeaderValue::from_static(kept)))
}

/// `ours` with `more` inserted before its end.
fn joined(ours: &[u8], more: &[&str], end: &str) -> Option<Bytes> {
    let mut all = ours.strip_suffix(end.as_bytes())?.to_vec();
    for one in more {
        all.push(b',');
        all.extend_from_slice(one.as_bytes());
    }
    all.extend_from_slice(end.as_bytes());
    Some(all.into())
}

fn group(theirs: &[u8]) -> Option<&RawValue> {
    let Groups { groups, items } = serde_json::from_slice(theirs).ok()?;
    groups.into_iter().chain(items).find(|raw| {
        // Readers disagree about an entry with both names, so it does not count.
        serde_json::from_str(raw.get()).is_ok_and(|Group { name, metadata: Metadata { name: other } }| {
            (name == GROUP && other.is_empty()) || (name.is_empty() && other == GROUP)
        })
    })
}

/// The entries for the group's documents. Paths of other groups are not forwarded.
fn places(theirs: &[u8]) -> Option<Vec<String>> {
    let Root { paths } = serde_json::from_slice(theirs).ok()?;
    let group = format!("apis/{GROUP}");
    let is_the_groups = |key: &str, url: &str| {
        let below = |text: &str, whole: &str| {
            text.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        below(key, &group) && below(url, &format!("/openapi/v3/{group}"))
    };
    let written = |(key, entry): (Cow<'_, str>, PathEntry<'_>)| {
        let url: String = serde_json::from_str(entry.server_relative_url.get()).ok()?;
        let key = is_the_groups(&key, &url).then(|| serde_json::to_string(&key).ok()).flatten()?;
        Some(format!("{key}:{{\"serverRelativeURL\":{}}}", entry.server_relative_url))
    };
    let entries: Vec<_> = paths.into_iter().filter_map(written).collect();
    (!entries.is_empty()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
    use serde_json::{Value, json};

    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        [(ACCEPT, HeaderValue::try_from(accept).expect("header"))].into_iter().collect()
    }

    fn answered(document: SharedDocument, accept: &str, theirs: &Value) -> Option<Value> {
        let answer = respond(document, theirs.to_string().as_bytes(), &headers(accept))?;
        assert_eq!(answer.headers()[CONTENT_TYPE], accept, "{document:?}");
        Some(serde_json::from_slice(answer.body()).expect("JSON"))
    }

    #[test]
    fn the_group_is_theirs_word_for_word_and_no_other_group_is() {
        let theirs = json!({"name": GROUP, "versions": [{"z": 1, "a": "<"}]});
        let list = json!({"kind": "APIGroupList", "groups": [{"name": "search.karmada.io"}, theirs.clone()]});
        let all = answered(SharedDocument::Groups, JSON, &list).expect("the group is there");
        let names: Vec<_> = all["groups"].as_array().into_iter().flatten().map(|group| &group["name"]).collect();
        assert_eq!(names, ["cluster.core.oam.dev", GROUP]);
        assert_eq!(all["groups"][1], theirs);

        let theirs = json!({"metadata": {"name": GROUP}, "versions": [{"freshness": "Current"}]});
        let list = json!({"items": [{"metadata": {"name": "apps"}}, theirs.clone()]});
        let all = answered(SharedDocument::Groups, V2, &list).expect("the group is there");
        assert_eq!((&all["items"][1], &all["items"][2]), (&theirs, &Value::Null));
    }

    #[test]
    fn of_open_api_only_the_groups_documents_are_told() {
        let url = "/openapi/v3/apis/cluster.karmada.io/v1alpha1?hash=1&x=<";
        let place = |url: &str| json!({"serverRelativeURL": url, "more": 1});
        let theirs = json!({"paths": {
            "apis/cluster.karmada.io/v1alpha1": place(url),
            "apis/cluster.karmada.io": place("/openapi/v3/apis/cluster.karmada.io?hash=2"),
            "apis/cluster.karmada.iox/v1": place("/openapi/v3/apis/cluster.karmada.io/v1"),
            "apis/cluster.karmada.io/v2": place("https://elsewhere/openapi/v3/apis/cluster.karmada.io/v2"),
            "version": place("/openapi/v3/version?hash=3"),
        }});
        let all = answered(SharedDocument::OpenApiRoot, JSON, &theirs).expect("the group is there");
        let paths = all["paths"].as_object().expect("paths");
        let keys: Vec<_> = paths.keys().map(String::as_str).collect();
        let ours = "apis/cluster.core.oam.dev/v1alpha1";
        assert_eq!(keys, [ours, "apis/cluster.karmada.io", "apis/cluster.karmada.io/v1alpha1"]);
        assert_eq!(paths["apis/cluster.karmada.io/v1alpha1"], json!({"serverRelativeURL": url}));
    }

    #[test]
    fn what_says_nothing_of_the_group_is_nothing() {
        for theirs in [json!({}), json!([]), json!({"groups": [{"name": "apps"}]}), json!({"paths": {"version": 1}})] {
            for document in [SharedDocument::Groups, SharedDocument::OpenApiRoot] {
                assert_eq!(answered(document, JSON, &theirs), None, "{document:?} {theirs}");
            }
        }
        assert!(respond(SharedDocument::Groups, b"\xff", &headers(JSON)).is_none());
    }

    #[test]
    fn an_unchanged_document_is_not_sent_again() {
        let theirs = json!({"groups": [{"name": GROUP}]}).to_string();
        let first = respond(SharedDocument::Groups, theirs.as_bytes(), &headers(JSON)).expect("the group is there");
        let mut known = headers(JSON);
        known.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        let second = respond(SharedDocument::Groups, theirs.as_bytes(), &known).expect("the group is there");
        assert_eq!((second.status().as_u16(), second.body().len()), (304, 0));
    }
}
