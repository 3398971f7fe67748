//! Tests of what the hub's ConfigMap changes, what it must not change, and when `loaded` becomes
//! true.

use std::collections::BTreeMap;
use std::convert::Infallible;

use futures_util::stream;
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::Response;
use hyper::body::{Bytes, Frame};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kit::pki::{Authority, Leaf};
use serde_json::json;
use tokio::runtime::Handle;

use super::*;
use crate::testing::https::{self, HttpsHub};
use crate::testing::{headers, metrics, peer};
use crate::{Auth, Config};

const BOTH: Parts = Parts { front_proxy: true, clients: true };

struct Source {
    inner: ConfigMapSource,
    trust: Arc<Trust>,
    loaded: watch::Receiver<bool>,
}

impl Source {
    fn new(parts: Parts) -> Self {
        let trust = Arc::<Trust>::default();
        let (sender, loaded) = watch::channel(false);
        Self { inner: ConfigMapSource::new(Arc::clone(&trust), parts, sender), trust, loaded }
    }

    fn apply(&mut self, data: &BTreeMap<String, String>) {
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        self.inner.apply(&ConfigMap { metadata, data: Some(data.clone()), ..ConfigMap::default() });
    }

    /// Generations of the trust snapshots.
    fn generations(&self) -> (Option<u64>, Option<u64>) {
        (
            self.trust.front_proxy().as_ref().map(|snapshot| snapshot.generation),
            self.trust.clients().as_ref().map(|snapshot| snapshot.generation),
        )
    }

    fn settings(&self) -> FrontProxySettings {
        self.trust.front_proxy().as_ref().expect("loaded").value.clone()
    }
}

fn data(proxies: &Authority, clients: &Authority) -> BTreeMap<String, String> {
    [
        (PROXY_CA, proxies.certificate_pem().as_str()),
        (CLIENT_CA, &clients.certificate_pem()),
        ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn authorities() -> (Authority, Authority) {
    (Authority::new("proxies"), Authority::new("clients"))
}

#[test]
fn a_complete_config_map_is_published_once() {
    let (proxies, clients) = authorities();
    let mut source = Source::new(BOTH);
    assert!(!*source.loaded.borrow());
    source.apply(&data(&proxies, &clients));
    let first = source.generations();
    assert!(first.0.is_some() && first.1.is_some() && *source.loaded.borrow());
    let settings = source.settings();
    assert_eq!(settings.allowed_names, ["front-proxy-client"]);
    assert!(settings.headers.uid.is_empty(), "a hub that names no uid header sends none");
    source.apply(&data(&proxies, &clients));
    assert_eq!(source.generations(), first, "a resync changes nothing");
}

#[test]
fn broken_parts_leave_the_last_good_ones_in_force() {
    let (proxies, clients) = authorities();
    let good = data(&proxies, &clients);
    for (key, value) in [
        (PROXY_CA, ""),
        (PROXY_CA, "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n"),
        (CLIENT_CA, ""),
        (CLIENT_CA, "no pem"),
        ("requestheader-username-headers", "X-Remote-User"),
        ("requestheader-allowed-names", r#"{"a": 1}"#),
    ] {
        let mut source = Source::new(BOTH);
        source.apply(&good);
        let before = source.generations();
        let mut broken = good.clone();
        broken.insert(key.to_owned(), value.to_owned());
        source.apply(&broken);
        assert_eq!(source.generations(), before, "{key}: {value}");
    }
}

#[test]
fn a_list_that_becomes_empty_takes_effect() {
    let (proxies, clients) = authorities();
    let mut source = Source::new(BOTH);
    let mut changed = data(&proxies, &clients);
    source.apply(&changed);
    changed.insert("requestheader-username-headers".to_owned(), "[]".to_owned());
    changed.remove("requestheader-allowed-names");
    source.apply(&changed);
    let settings = source.settings();
    assert!(settings.headers.user.is_empty() && settings.allowed_names.is_empty());
    assert_eq!(settings.headers.group.len(), 1);
}

#[test]
fn readiness_waits_for_a_config_map_without_doubt() {
    let (proxies, clients) = authorities();
    let good = data(&proxies, &clients);
    for (key, value, ready) in [
        (PROXY_CA, Some("broken"), false),
        (PROXY_CA, None, true),
        ("requestheader-group-headers", Some("broken"), false),
        (CLIENT_CA, None, true),
    ] {
        let mut source = Source::new(BOTH);
        let mut changed = good.clone();
        changed.remove(key);
        changed.extend(value.map(|value| (key.to_owned(), value.to_owned())));
        source.apply(&changed);
        assert_eq!(*source.loaded.borrow(), ready, "{key}: {value:?}");
        source.apply(&good);
        assert!(*source.loaded.borrow(), "{key}: {value:?}");
    }
}

#[test]
fn a_part_that_comes_from_a_file_is_left_alone() {
    let (proxies, clients) = authorities();
    let mut source = Source::new(Parts { front_proxy: false, clients: true });
    source.apply(&data(&proxies, &clients));
    let (front_proxy, clients) = source.generations();
    assert!(front_proxy.is_none() && clients.is_some() && *source.loaded.borrow());
}

/// A list that is answered at once, and a watch that stays open.
fn answer(request: &hyper::Request<()>, data: &BTreeMap<String, String>) -> https::Answer {
    assert_eq!(request.uri().path(), "/api/v1/namespaces/kube-system/configmaps");
    let query = request.uri().query().unwrap_or_default();
    assert!(query.contains("fieldSelector=metadata.name%3Dextension-apiserver-authentication"), "{query}");
    if query.contains("watch=true") {
        let open = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        return Response::new(BoxBody::new(open));
    }
    let object = json!({ "metadata": { "name": NAME, "namespace": NAMESPACE, "resourceVersion": "1" }, "data": data });
    let list = json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": [object] });
    https::json(200, &list)
}

#[tokio::test]
async fn the_hubs_config_map_is_found_with_the_stock_permissions() {
    let (proxies, clients) = authorities();
    let data = data(&proxies, &clients);
    let hub = HttpsHub::start(move |request, _| answer(&request, &data)).await;
    let mut auth = Auth::build(&Config::default(), Some(hub.client().into()), &Handle::current(), &metrics())
        .expect("valid settings");
    auth.loaded.wait_for(|loaded| *loaded).await.expect("the watch goes on");
    let peer = peer(&proxies.issue(&Leaf::client("front-proxy-client")).chain_der);
    let mut lines = headers([("X-Remote-User", "alice")]);
    let user = auth.authenticator.authenticate(&peer, &mut lines).await.expect("trusted");
    assert_eq!(user.name, "alice");
}

async fn loads(tolerate: bool, hub: &HttpsHub) -> bool {
    let config = Config { tolerate_lookup_failure: tolerate, ..Config::default() };
    let mut auth =
        Auth::build(&config, Some(hub.client().into()), &Handle::current(), &metrics()).expect("valid settings");
    // The clock is paused, and advances whenever all tasks wait.
    timeout(Duration::from_mins(2), auth.loaded.wait_for(|loaded| *loaded)).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_failing_lookup_is_waited_for_unless_that_is_not_wanted() {
    let forbidden =
        json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no" });
    let hub = HttpsHub::start(move |_, _| https::json(403, &forbidden)).await;
    assert!(!loads(false, &hub).await);
    assert!(loads(true, &hub).await);
    // A hub without the ConfigMap, or with an empty one, does not block a configuration that can do
    // without, either.
    let empty =
        json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": [] });
    let hub = HttpsHub::start(move |_, _| https::json(200, &empty)).await;
    assert!(!loads(false, &hub).await);
    assert!(loads(true, &hub).await);
    let hub = HttpsHub::start(|_, _| {
        let open = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        Response::new(BoxBody::new(open))
    })
    .await;
    assert!(loads(true, &hub).await);
}
