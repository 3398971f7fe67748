//! Lists and watches page by page: one answer cannot hold all objects of a kind.

use api::hub_object::{HubListMeta, Unreadable};
use api::list_options::ListOptions;
use kube::runtime::watcher;

use crate::calls::Hub;
use crate::failure::{Cause, Collection, HubFailure};

/// Objects of one answer of a list: each may have a mebibyte and a half, an answer is there twice
/// while it is read, and several parts of a program with 512 MiB list at the same time.
pub const PAGE: u32 = 25;
/// Pages of a list, which has no end otherwise if a hub says so.
const PAGES: usize = 10_000;

/// How kube's watcher is to list and watch: its own pages have 500 objects. A structure test
/// refuses every other beginning.
pub fn paged() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

// === impl Hub ===

impl Hub {
    /// Hands each page of what `options` chooses to `take`, which reads what the page says of the
    /// list. Returns the version of the list, which all pages have.
    pub async fn list_all(
        &self,
        collection: Collection,
        options: &ListOptions,
        mut take: impl FnMut(&[u8]) -> Result<HubListMeta, Unreadable>,
    ) -> Result<String, HubFailure> {
        let mut options = ListOptions { limit: Some(PAGE.into()), ..options.clone() };
        if options.resource_version == "0" {
            // A hub reads that from its cache, without pages. What is there now is as good.
            options.resource_version.clear();
            options.version_match.clear();
        }
        for _ in 0..PAGES {
            let answer = self.list(collection, &options.to_hub("", false)).await?;
            let said = take(&answer).map_err(|_| HubFailure::unreadable(collection))?;
            self.passed(answer.len());
            drop(answer);
            match said.next.filter(|token| !token.is_empty()) {
                Some(token) => {
                    let (resource_version, version_match) = (String::new(), String::new());
                    options = ListOptions { token, resource_version, version_match, ..options };
                }
                None => return Ok(said.resource_version),
            }
        }
        Err(HubFailure { cause: Cause::TooLarge { most: PAGES, unit: "pages" }, ..HubFailure::unreadable(collection) })
    }
}
