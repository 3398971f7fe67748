//! Follows the hub's own CAs and front proxy: ConfigMap
//! `kube-system/extension-apiserver-authentication`.
//!
//! The rules are those of `headerrequest.RequestHeaderAuthRequestController` and
//! `dynamiccertificates.ConfigMapCAController`: a missing or broken CA, a list that is not JSON, or
//! a deleted ConfigMap changes nothing, but a list that becomes empty takes effect. Nothing is
//! published if nothing changed.

mod lists;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client};
use net::words::causes;
use tokio::sync::watch;
use tokio::time::timeout;

use self::lists::{Authorities, Lists, update};
use crate::trust::{FrontProxySettings, Trust};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// The name for the log.
const CONFIG_MAP: &str = "kube-system/extension-apiserver-authentication";
const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";
/// If failures are tolerated: the silence of the hub that counts as one.
const TOLERATED_SILENCE: Duration = Duration::from_secs(10);

/// The parts that the ConfigMap decides; flags decide the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) front_proxy: bool,
    pub(crate) clients: bool,
}

/// Publishes the contents of the ConfigMap.
#[derive(Debug)]
pub(crate) struct ConfigMapSource {
    trust: Arc<Trust>,
    parts: Parts,
    lists: Option<Lists>,
    proxy: Option<Authorities>,
    clients: Option<Authorities>,
    loaded: watch::Sender<bool>,
    tolerant: bool,
}

/// The result for one bundle in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    New,
    /// Not in the ConfigMap.
    Absent,
    Broken,
}

// === impl ConfigMapSource ===

impl ConfigMapSource {
    /// `loaded` becomes true with the first ConfigMap that is clear about the front proxy.
    pub(crate) fn new(trust: Arc<Trust>, parts: Parts, loaded: watch::Sender<bool>) -> Self {
        Self { trust, parts, lists: None, proxy: None, clients: None, loaded, tolerant: false }
    }

    /// Whether `loaded` also becomes true after a failed attempt to read the ConfigMap. The
    /// attempts continue nevertheless.
    pub(crate) fn tolerating_failure(self, tolerant: bool) -> Self {
        Self { tolerant, ..self }
    }

    /// Follows the ConfigMap forever, with back-off and jitter after errors.
    pub(crate) async fn follow(mut self, client: Client) {
        let api = Api::<ConfigMap>::namespaced(client, NAMESPACE);
        // The stock Role is restricted by resourceName, so list and watch are only allowed with
        // this selector.
        let config = Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = std::pin::pin!(watcher(api, config).default_backoff());
        loop {
            let waits = self.tolerant && !*self.loaded.borrow();
            let event = if waits { timeout(TOLERATED_SILENCE, events.next()).await } else { Ok(events.next().await) };
            let Ok(event) = event else {
                self.tolerate();
                continue;
            };
            let Some(event) = event else { return };
            match event {
                Ok(Event::Apply(map) | Event::InitApply(map)) => self.apply(&map),
                Ok(Event::Delete(_)) => {
                    tracing::warn!(config_map = CONFIG_MAP, "ConfigMap deleted: its last contents stay in force");
                }
                Ok(Event::InitDone) if !*self.loaded.borrow() => {
                    tracing::warn!(
                        config_map = CONFIG_MAP,
                        "ConfigMap not found or not usable: the hub's front proxy is unknown"
                    );
                    self.tolerate();
                }
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => {
                    let error = causes(&error);
                    tracing::warn!(config_map = CONFIG_MAP, error, "watch of the ConfigMap failed, trying again");
                    self.tolerate();
                }
            }
        }
    }

    /// Continues without the ConfigMap, if configured: only direct callers are known until it can
    /// be read.
    fn tolerate(&self) {
        if self.tolerant && !self.loaded.send_replace(true) {
            tracing::warn!(
                config_map = CONFIG_MAP,
                "ConfigMap not read: continuing without it; until it can be read, the hub's own requests are not \
                 recognized"
            );
        }
    }

    pub(crate) fn apply(&mut self, map: &ConfigMap) {
        if map.metadata.name.as_deref() != Some(NAME) {
            return;
        }
        let get = |key: &str| map.data.as_ref().and_then(|data| data.get(key)).map(String::as_str).unwrap_or_default();
        if self.parts.clients && update(&mut self.clients, CLIENT_CA, get(CLIENT_CA)) == Change::New {
            self.publish_clients();
        }
        let proxy = if self.parts.front_proxy { self.apply_front_proxy(get) } else { Change::None };
        match proxy {
            Change::Broken => {}
            Change::Absent if self.proxy.is_none() => {
                tracing::warn!(
                    config_map = CONFIG_MAP,
                    "the hub names no front proxy: only direct callers can be authenticated"
                );
                self.loaded.send_replace(true);
            }
            _ => drop(self.loaded.send_replace(true)),
        }
    }

    fn apply_front_proxy<'a>(&mut self, get: impl Fn(&str) -> &'a str) -> Change {
        let change = update(&mut self.proxy, PROXY_CA, get(PROXY_CA));
        let lists = match Lists::parse(&get) {
            Ok(lists) => Some(lists),
            Err(key) => {
                tracing::warn!(
                    config_map = CONFIG_MAP,
                    key,
                    "not a JSON list of strings: the last good lists stay in force"
                );
                self.lists.clone()
            }
        };
        let Some(lists) = lists else { return Change::Broken };
        let changed = change == Change::New || self.lists.as_ref() != Some(&lists);
        if let Some(proxy) = self.proxy.as_ref().filter(|_| changed) {
            self.trust.publish_front_proxy(FrontProxySettings {
                authorities: Arc::clone(&proxy.bundle),
                allowed_names: lists.allowed_names.clone(),
                headers: lists.headers.clone(),
            });
            tracing::info!(config_map = CONFIG_MAP, "front proxy settings loaded");
        }
        self.lists = Some(lists);
        if self.proxy.is_some() { Change::New } else { change }
    }

    fn publish_clients(&self) {
        if let Some(clients) = &self.clients {
            self.trust.publish_clients(Arc::clone(&clients.bundle));
            tracing::info!(config_map = CONFIG_MAP, "client CAs loaded");
        }
    }
}

#[cfg(test)]
mod tests;
