//! Objects of one kind of a member, by name and version alone: listed, and watched.
//!
//! A member says what it likes, as long as it likes. kube holds each object of an answer, and what
//! it does not know of it too: 16 MiB become 2 GiB. Here nothing is held but the answer itself.

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

/// Objects of one answer of a list.
const PAGE: u32 = 500;
/// Pages of a list, which has no end otherwise if a member says so. Of a longer one, the rest is as
/// if it was not there.
const PAGES: usize = 200;
/// A server ends a watch after 290 s, if it is asked as kube asks. One that says nothing for so
/// long is gone.
const SILENCE: Duration = Duration::from_secs(295);
/// Without contents, where a server can: not each that is behind an API server can.
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

/// What a watch tells of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was made, or changed.
    There,
    Gone,
}

// === impl Sight ===

impl Sight {
    /// Bytes of an answer. Where the sender is [bounded](Sender::bounded) by less, less.
    pub const MOST: usize = 16 << 20;

    /// Of `resource` in `namespace`; empty: in none, or in all.
    pub fn new(sender: Sender, resource: &ApiResource, namespace: &str) -> Self {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let requests = Requests::new(DynamicObject::url_path(resource, namespace));
        Self { sender, requests, selector: None }
    }

    /// The same; of objects with these labels.
    #[must_use]
    pub fn selecting(self, labels: String) -> Self {
        Self { selector: Some(labels), ..self }
    }

    /// At most as many bytes as are reported of a name or a version.
    pub fn cut(text: &str) -> &str {
        wire::cut(text)
    }

    /// Lists them all, and hands `take` the name and the version of each; both are cut to 253
    /// bytes. Returns the version of the list; empty: the server tells none.
    ///
    /// # Errors
    ///
    /// There is no answer, or one that is no list.
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

    /// Watches them from `version` on, and hands `take` what changed, with name and version. It
    /// goes on where the server ends it well, and where it falls silent.
    ///
    /// Returns why it broke; a list has to come before another one then.
    pub async fn watch(&self, mut version: String, mut take: impl FnMut(Change, &str, &str) + Send) -> Failure {
        loop {
            match self.watch_once(&mut version, &mut take).await {
                Ok(()) => {}
                Err(failure) => return failure,
            }
        }
    }

    /// Until it ends, and the version up to which it reported all.
    async fn watch_once(
        &self,
        version: &mut String,
        take: &mut (impl FnMut(Change, &str, &str) + Send),
    ) -> Result<(), Failure> {
        let params = WatchParams { label_selector: self.selector.clone(), ..WatchParams::default() };
        let request = request(self.requests.watch(&params, version), WATCH)?;
        let response = success(self.sender.send(request).await?).await?;
        // How long a line may be is for the sender to say ([`Sender::roomed`]). One that the watch
        // ends in the middle of is none.
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
