//! Flags of authentication and authorization.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as Group;
use telemetry::flags::duration;

use super::UpgradeVerb;

#[derive(Debug, Group)]
pub struct Authentication {
    /// Kubeconfig for `TokenReview` and the hub's authentication `ConfigMap` (default:
    /// --kubeconfig, else in-cluster)
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// CA bundle for client certificates (default: the hub's)
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// CA bundle for front proxies (default: the hub's)
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// Common names allowed in front-proxy certificates; empty allows any certificate of the CA
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub requestheader_allowed_names: Vec<String>,
    /// Headers in which a front proxy sends the user's name
    #[arg(long, value_delimiter = ',', default_value = "x-remote-user", value_name = "HEADERS")]
    pub requestheader_username_headers: Vec<String>,
    /// Headers in which a front proxy sends the user's UID
    #[arg(long, value_delimiter = ',', value_name = "HEADERS")]
    pub requestheader_uid_headers: Vec<String>,
    /// Headers in which a front proxy sends the user's groups
    #[arg(long, value_delimiter = ',', default_value = "x-remote-group", value_name = "HEADERS")]
    pub requestheader_group_headers: Vec<String>,
    /// Prefixes of headers in which a front proxy sends the user's extra attributes
    #[arg(long, value_delimiter = ',', default_value = "x-remote-extra-", value_name = "PREFIXES")]
    pub requestheader_extra_headers_prefix: Vec<String>,
    /// Do not read the hub's authentication `ConfigMap`
    #[arg(long)]
    pub authentication_skip_lookup: bool,
    /// Become ready even if the hub's authentication `ConfigMap` cannot be read
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub authentication_tolerate_lookup_failure: bool,
    /// How long `TokenReview` results are cached
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// Treat requests without credentials as `system:anonymous`
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub anonymous_auth: bool,
}

#[derive(Debug, Group)]
pub struct Authorization {
    /// Kubeconfig for `SubjectAccessReview` (default: --kubeconfig, else in-cluster)
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// Paths served without authorization; a trailing `*` makes a prefix
    #[arg(long, value_delimiter = ',', default_value = "/healthz,/readyz,/livez", value_name = "PATHS")]
    pub authorization_always_allow_paths: Vec<String>,
    /// How long `SubjectAccessReview` results that allow are cached
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long `SubjectAccessReview` results that deny are cached
    #[arg(long, value_parser = duration, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
    /// Verb that authorizes an upgrade by GET: WebSocket exec, attach, port-forward and all others,
    /// except a watch of a collection
    #[arg(long, value_enum, default_value_t = UpgradeVerb::Create, value_name = "VERB")]
    pub upgrade_verb: UpgradeVerb,
    /// Review each proxied request a second time, for what it does on the member
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub authorize_proxy_subpath: bool,
    /// Allow every request without review; needs a loopback `--bind-address`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub standalone_debug_mode: bool,
}
