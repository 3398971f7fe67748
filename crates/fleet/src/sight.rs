//! Lists and watches a member's objects of one kind, by name and version only.
//!
//! A member may send anything, of any length. kube holds each object of a response, including
//! unknown fields: 16 MiB become 2 GiB. This module holds nothing but the response itself.

mod wire;

use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderValue, Request};
use hub::{Line, Lines};
use kube::Resource as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchParams};
use kube::client::Body;
use kube::core::Request as Requests;

use self::wire::{Event, Page, Said};
use crate::answer::{read, success};
use crate::failure::Failure;
use crate::sender::Sender;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Most pages of a list, which a member could make endless. The rest of a longer list is ignored.
const PAGES: usize = 200;
/// A server ends a watch after 290 s, as kube's requests ask. A server that is silent for this long
/// is gone.
const SILENCE: Duration = Duration::from_secs(295);
/// Asks for metadata only, and accepts whole objects: not every server behind an API server can
/// leave the contents out.
const LIST: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
const WATCH: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");

/// Objects of one kind, in one namespace or in none.
pub struct Sight {
    sender: Sender,
    requests: Requests,
    selector: Option<String>,
}

/// A change that a watch reports of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Created or changed.
    There,
    Gone,
}

// === impl Sight ===

impl Sight {
    /// Longest response, in bytes. A [bounded](Sender::bounded) sender may allow less.
    pub const MOST: usize = 16 << 20;

    /// Objects of `resource` in `namespace`. If that is empty: objects without a namespace, or in
    /// all namespaces.
    pub fn new(sender: Sender, resource: &ApiResource, namespace: &str) -> Self {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let requests = Requests::new(DynamicObject::url_path(resource, namespace));
        Self { sender, requests, selector: None }
    }

    /// Selects only objects with these labels.
    #[must_use]
    pub fn selecting(self, labels: String) -> Self {
        Self { selector: Some(labels), ..self }
    }

    /// Cuts `text` to the bytes that are reported of a name or a version.
    pub fn cut(text: &str) -> &str {
        wire::cut(text)
    }

    /// Lists all objects, and passes the name and version of each to `take`; both are cut to 253
    /// bytes. Returns the version of the list, which is empty if the server sends none.
    ///
    /// # Errors
    ///
    /// Fails if there is no response, or if it is not a list.
    pub async fn list(&self, mut take: impl FnMut(&str, &str) + Send) -> Result<String, Failure> {
        let (mut version, mut next) = (String::new(), None);
        for _ in 0..PAGES {
            let page = self.page(next.take(), &mut take).await?;
            version = page.version;
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        Ok(version)
    }

    async fn page(&self, next: Option<String>, take: &mut (impl FnMut(&str, &str) + Send)) -> Result<Page, Failure> {
        let label_selector = self.selector.clone();
        let page = ListParams { limit: Some(PAGE), continue_token: next, label_selector, ..ListParams::default() };
        let request = request(self.requests.list(&page), LIST)?;
        let page = read(&self.sender, request, Self::MOST, |bytes| wire::page(bytes, take)).await?;
        page.map_err(|error| Failure::own(format!("a list that cannot be read: {error}")))
    }

    /// Watches the objects from `version` on, and passes each change, with name and version, to
    /// `take`. Watches again when the server ends the watch cleanly or falls silent.
    ///
    /// Returns why the watch broke. The caller must then list before it watches again.
    pub async fn watch(&self, mut version: String, mut take: impl FnMut(Change, &str, &str) + Send) -> Failure {
        loop {
            match self.watch_once(&mut version, &mut take).await {
                Ok(()) => {}
                Err(failure) => return failure,
            }
        }
    }

    /// Watches until the watch ends. `version` becomes the version up to which all changes were
    /// reported.
    async fn watch_once(
        &self,
        version: &mut String,
        take: &mut (impl FnMut(Change, &str, &str) + Send),
    ) -> Result<(), Failure> {
        let params = WatchParams { label_selector: self.selector.clone(), ..WatchParams::default() };
        let request = request(self.requests.watch(&params, version), WATCH)?;
        let response = success(self.sender.send(request).await?).await?;
        // The sender limits the length of lines ([`Sender::roomed`]). A line that the end of the
        // watch cuts off does not count.
        let mut lines = Lines::within(response.into_body(), usize::MAX, SILENCE);
        while let Line::Whole(line) = lines.try_next().await.map_err(|error| Failure::broken(&*error))? {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line =
                Event::read(&line).map_err(|error| Failure::own(format!("a watch that cannot be read: {error}")))?;
            let at = match line.said() {
                Said::There(name, at) => report(take, Change::There, name, at),
                Said::Gone(name, at) => report(take, Change::Gone, name, at),
                Said::Bookmark(at) => at,
                Said::Failed(code) => return Err(Failure::own(format!("the member ended the watch: {code}"))),
                Said::Other => continue,
            };
            if at.is_empty() {
                return Err(Failure::own("a watch event has no resourceVersion"));
            }
            at.clone_into(version);
        }
        Ok(())
    }
}

fn report<'a>(take: &mut impl FnMut(Change, &str, &str), change: Change, name: &str, at: &'a str) -> &'a str {
    if !at.is_empty() {
        take(change, name, at);
    }
    at
}

fn request(
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    accept: HeaderValue,
) -> Result<Request<Body>, Failure> {
    let mut request = request.map_err(|error| Failure::own(error.to_string()))?;
    request.headers_mut().insert(ACCEPT, accept);
    Ok(request.map(Body::from))
}

#[cfg(test)]
mod tests;
