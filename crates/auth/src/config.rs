//! The settings of authentication and authorization, with the defaults of an aggregated API server.
//!
//! Each field names its command-line flag. The flags have the spelling of
//! `k8s.io/apiserver/pkg/server/options`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Limits;
use crate::user::User;

/// Settings of authentication and authorization; [`Config::default`] is what a hub's aggregated API
/// server uses.
#[derive(Debug, Clone)]
pub struct Config {
    /// `--anonymous-auth`: whether a request without any credential is `system:anonymous` (and then
    /// mostly forbidden).
    pub anonymous: bool,
    /// `--client-ca-file`: PEM bundle of the CAs of client certificates, in place of the
    /// ConfigMap's.
    pub client_ca_file: Option<PathBuf>,
    pub front_proxy: FrontProxyConfig,
    /// `--authentication-skip-lookup`: do not read the hub's ConfigMap.
    pub skip_lookup: bool,
    /// `--authentication-tolerate-lookup-failure`: do not wait for a ConfigMap that cannot be read
    /// at the start.
    pub tolerate_lookup_failure: bool,
    pub token: TokenConfig,
    pub authorization: AuthorizationConfig,
    pub reviews: ReviewConfig,
}

/// How reviews by the hub are shared out.
#[derive(Debug, Clone, Copy)]
pub struct ReviewConfig {
    /// How many of one user may wait for the hub.
    pub waiting_of_one: usize,
    /// Whether each ServiceAccount is a user of its own here. Usually all of a namespace are one
    /// ([`User::owner`](crate::User::owner)).
    pub accounts_apart: bool,
}

/// The front proxy by flags. Only used with a `ca_file`; the ConfigMap has its own names and
/// headers.
#[derive(Debug, Clone)]
pub struct FrontProxyConfig {
    /// `--requestheader-client-ca-file`
    pub ca_file: Option<PathBuf>,
    /// `--requestheader-allowed-names`; if empty, any certificate of `ca_file` is allowed.
    pub allowed_names: Vec<String>,
    /// `--requestheader-username-headers`
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`
    pub extra_header_prefixes: Vec<String>,
}

/// Bearer tokens.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// `--token-auth-file`: checked before the hub.
    pub file: Option<PathBuf>,
    /// `--authentication-token-webhook-cache-ttl`: how long token reviews are cached. Zero turns
    /// the cache off.
    pub cache_ttl: Duration,
}

/// Permissions of users.
#[derive(Debug, Clone)]
pub struct AuthorizationConfig {
    /// `--authorization-webhook-cache-authorized-ttl`; zero turns the cache off.
    pub authorized_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`; zero turns the cache off.
    pub unauthorized_ttl: Duration,
    /// `--authorization-always-allow-paths`: non-resource paths that are open to all callers; a
    /// trailing `*` makes a prefix.
    pub always_allow_paths: Vec<String>,
    /// Whether `system:masters` may do everything without a review.
    pub allow_masters: bool,
    /// `--standalone-debug-mode`: every caller may do everything, without a review.
    pub allow_everything: bool,
    /// `--standalone-policy`: YAML rules, used when there is no hub.
    pub standalone_policy: Option<PathBuf>,
}

// === impl ReviewConfig ===

impl ReviewConfig {
    /// Whose share a review about `user` counts against.
    pub(crate) fn owner(self, user: &User) -> Arc<str> {
        if self.accounts_apart { user.name.as_str().into() } else { user.owner().into() }
    }
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            anonymous: true,
            client_ca_file: None,
            front_proxy: FrontProxyConfig::default(),
            skip_lookup: false,
            tolerate_lookup_failure: false,
            token: TokenConfig { file: None, cache_ttl: Duration::from_secs(10) },
            authorization: AuthorizationConfig::default(),
            reviews: ReviewConfig::default(),
        }
    }
}

impl ReviewConfig {
    /// One user's share of a cache with these limits. Decisions are kept for thousands of clusters,
    /// and a caller without rights pushes out its own only.
    pub(crate) fn of_one(self, all: Limits) -> Limits {
        Limits { kept: all.kept / 4, pending: self.waiting_of_one }
    }
}

impl Default for ReviewConfig {
    /// A quarter of all that may.
    fn default() -> Self {
        Self { waiting_of_one: Limits::PENDING_OF_USERS / 4, accounts_apart: false }
    }
}

impl Default for FrontProxyConfig {
    fn default() -> Self {
        Self {
            ca_file: None,
            allowed_names: Vec::new(),
            username_headers: vec!["x-remote-user".to_owned()],
            uid_headers: Vec::new(),
            group_headers: vec!["x-remote-group".to_owned()],
            extra_header_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }
}

impl Default for AuthorizationConfig {
    fn default() -> Self {
        Self {
            authorized_ttl: Duration::from_secs(10),
            unauthorized_ttl: Duration::from_secs(10),
            always_allow_paths: ["/healthz", "/livez", "/readyz"].map(str::to_owned).to_vec(),
            allow_masters: true,
            allow_everything: false,
            standalone_policy: None,
        }
    }
}
