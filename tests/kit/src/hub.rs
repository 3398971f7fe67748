//! A hub that plays the few API calls a gateway makes: objects with watches, the authentication
//! ConfigMap, and reviews.
//!
//! It is strict where a real hub is (bearer token, the resourceName-restricted Role of the
//! ConfigMap, expired resourceVersions) and lets the test decide everything a cluster's state
//! would: identities, rights, failures.

mod api;
mod authentication;
mod bad_day;
mod calls;
mod query;
mod refusal;
mod resource;
mod reviews;
mod secret;
mod store;
mod watch;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use serde_json::Value;

pub use self::authentication::{AUTHENTICATION_NAME, AUTHENTICATION_NAMESPACE};
pub use self::bad_day::review_faults;
pub use self::calls::{Call, Fault};
pub use self::resource::Resource;
pub use self::reviews::{Decision, TokenUser};
pub use self::secret::ClusterSecret;

use self::api::Hub;
use self::store::Key;
use crate::pki::{ALPN_BOTH, Authority, ClientAuth, Issued, Leaf, server_config};
use crate::server::Server;
use crate::wait::Gate;

/// HTTP/2 streams one connection may have open: kube-apiserver's default.
const MAX_STREAMS: u32 = 100;
/// The bearer token every call has to carry.
const TOKEN: &str = "gateway-hub-token";

/// A running fake hub. It stops when dropped.
#[derive(Debug)]
pub struct FakeHub {
    server: Server,
    hub: Arc<Hub>,
    authority: Authority,
    clients: Authority,
    front_proxy: Authority,
}

// === impl FakeHub ===

impl FakeHub {
    /// Starts a hub with no Secret, no known token, and everything denied; its authentication
    /// ConfigMap names [`FakeHub::clients`] and [`FakeHub::front_proxy`].
    pub async fn start() -> Self {
        let authority = Authority::new("hub-ca");
        let tls = server_config(&authority.issue(&Leaf::server("kube-apiserver")), ClientAuth::None, ALPN_BOTH);
        let hub = Arc::new(Hub::new(TOKEN));
        let handler = {
            let hub = hub.clone();
            Arc::new(move |request, _| {
                let answer = hub.clone().answer(request);
                Box::pin(async move { Ok(answer.await) }) as _
            })
        };
        let server = Server::start((Ipv4Addr::LOCALHOST, 0).into(), tls, MAX_STREAMS, handler).await;
        let server = server.expect("a hub can listen on loopback");
        let (clients, front_proxy) = (Authority::new("hub-client-ca"), Authority::new("front-proxy-ca"));
        hub.store.put(Resource::ConfigMaps, authentication::config_map(&clients, &front_proxy));
        Self { server, hub, authority, clients, front_proxy }
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The bearer token it accepts.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The root certificate of its serving certificate, PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }

    /// The authority of users' client certificates (`client-ca-file`).
    pub fn clients(&self) -> &Authority {
        &self.clients
    }

    /// The authority of the aggregator's client certificate (`requestheader-client-ca-file`).
    pub fn front_proxy(&self) -> &Authority {
        &self.front_proxy
    }

    /// The aggregator's client certificate, with an allowed name.
    pub fn front_proxy_identity(&self) -> Issued {
        self.front_proxy.issue(&Leaf::client(authentication::ALLOWED_NAME))
    }

    /// A kubeconfig with this hub, its CA and the token.
    pub fn kubeconfig(&self) -> String {
        let ca = base64::engine::general_purpose::STANDARD.encode(self.ca_pem());
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hub\nclusters:\n- name: hub\n  cluster:\n    server: {}\n    \
             certificate-authority-data: {ca}\nusers:\n- name: gateway\n  user:\n    token: {TOKEN}\ncontexts:\n- name: hub\n  \
             context:\n    cluster: hub\n    user: gateway\n",
            self.url()
        )
    }

    /// Writes [`FakeHub::kubeconfig`] as `kubeconfig` into `directory`.
    pub fn write_kubeconfig(&self, directory: &Path) -> std::io::Result<PathBuf> {
        let path = directory.join("kubeconfig");
        std::fs::write(&path, self.kubeconfig())?;
        Ok(path)
    }

    /// Creates or replaces an object; its `metadata` needs a name, and a namespace where the
    /// resource has one. Returns the resourceVersion.
    pub fn put(&self, resource: Resource, object: impl Into<Value>) -> u64 {
        self.hub.store.put(resource, object.into())
    }

    /// Makes a custom resource known.
    pub fn install(&self, resource: Resource) {
        self.hub.installed.lock().insert(resource);
    }

    /// Deletes a custom resource and all its objects; watches of it end.
    pub fn uninstall(&self, resource: Resource) {
        for (key, _) in self.hub.store.list(resource).1 {
            self.hub.store.delete(&key);
        }
        self.hub.installed.lock().remove(&resource);
        self.hub.watches.order(|orders| orders.ended.push(resource));
    }

    /// Creates or replaces a Secret; see [`ClusterSecret`].
    pub fn put_secret(&self, secret: impl Into<Value>) -> u64 {
        self.put(Resource::Secrets, secret)
    }

    /// Deletes an object; false if there was none.
    pub fn delete(&self, resource: Resource, namespace: &str, name: &str) -> bool {
        self.hub.store.delete(&Key::new(resource, namespace, name)).is_some()
    }

    /// Deletes a Secret; false if there was none.
    pub fn delete_secret(&self, namespace: &str, name: &str) -> bool {
        self.delete(Resource::Secrets, namespace, name)
    }

    /// An object as it is now.
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.hub.store.get(&Key::new(resource, namespace, name))
    }

    /// Changes the data of the authentication ConfigMap.
    pub fn change_authentication(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> u64 {
        let current = self.get(Resource::ConfigMaps, AUTHENTICATION_NAMESPACE, AUTHENTICATION_NAME);
        self.put(Resource::ConfigMaps, authentication::changed(current.as_ref(), change))
    }

    /// Deletes the authentication ConfigMap; false if there was none.
    pub fn delete_authentication(&self) -> bool {
        self.delete(Resource::ConfigMaps, AUTHENTICATION_NAMESPACE, AUTHENTICATION_NAME)
    }

    /// Makes `token` authenticate `user`.
    pub fn add_token(&self, token: &str, user: TokenUser) {
        self.hub.reviews.add_token(token, user);
    }

    /// Makes `token` unknown again.
    pub fn remove_token(&self, token: &str) {
        self.hub.reviews.remove_token(token);
    }

    /// Answers `SubjectAccessReview`s by a function of their `spec`. Until set, every user is
    /// denied everything.
    pub fn on_access(&self, decide: impl Fn(&Value) -> Decision + Send + Sync + 'static) {
        self.hub.reviews.on_access(decide);
    }

    /// Allows everything to every user.
    pub fn allow_all(&self) {
        self.on_access(|_| Decision::allow());
    }

    /// The `spec` of every TokenReview so far.
    pub fn token_reviews(&self) -> Vec<Value> {
        self.hub.reviews.token_specs()
    }

    /// The `spec` of every SubjectAccessReview so far.
    pub fn access_reviews(&self) -> Vec<Value> {
        self.hub.reviews.access_specs()
    }

    /// How often a call was made, failed ones included.
    pub fn calls(&self, call: Call) -> usize {
        self.hub.calls.count(call)
    }

    /// Waits until a call was made at least `times`.
    pub async fn called(&self, call: Call, times: usize) {
        self.hub.calls.reached(call, times).await;
    }

    /// Every request so far as `METHOD target`, the oldest first.
    pub fn requests(&self) -> Vec<String> {
        self.hub.calls.requests()
    }

    /// Each `User-Agent` heard so far; empty for calls without one.
    pub fn user_agents(&self) -> Vec<String> {
        self.hub.calls.user_agents()
    }

    /// Makes a call fail, or wait, from now on.
    pub fn fail(&self, call: Call, fault: Fault) {
        self.hub.calls.fail(call, fault, None);
    }

    /// Makes the next `times` of a call fail, or wait.
    pub fn fail_next(&self, call: Call, times: usize, fault: Fault) {
        self.hub.calls.fail(call, fault, Some(times));
    }

    /// Ends the fault of a call.
    pub fn heal(&self, call: Call) {
        self.hub.calls.heal(call);
    }

    /// Waits until exactly `count` watches of `resource` are open and have sent the existing
    /// objects.
    pub async fn watching(&self, resource: Resource, count: usize) {
        self.hub.watches.reached(resource, count).await;
    }

    /// Holds back the events of watches of `resource`, from the next change on and until the gate
    /// is open. Reads are answered meanwhile.
    pub fn hold_watches(&self, resource: Resource, gate: &Gate) {
        self.hub.watches.hold(resource, gate.clone());
    }

    /// Sends a bookmark on every watch that asked for them.
    pub fn bookmark(&self) {
        self.hub.watches.order(|orders| orders.bookmarks += 1);
    }

    /// Ends every open watch properly, as a hub does after its timeout.
    pub fn end_watches(&self) {
        self.hub.watches.order(|orders| orders.ends += 1);
    }

    /// Breaks every open watch in the middle.
    pub fn break_watches(&self) {
        self.hub.watches.order(|orders| orders.aborts += 1);
    }

    /// Forgets all history: a watch from an older resourceVersion gets 410 Gone.
    pub fn compact(&self) {
        self.hub.store.compact();
    }

    /// Closes every open connection, even in mid-request.
    pub fn close_connections(&self) {
        self.server.close_connections();
    }
}

#[cfg(test)]
mod tests;
