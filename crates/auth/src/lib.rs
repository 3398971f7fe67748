//! Authenticates and authorizes callers.
//!
//! Works like an aggregated Kubernetes API server
//! (`k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go`,
//! `k8s.io/apiserver/pkg/authorization/authorizerfactory/delegating.go`): by the hub's front proxy,
//! a client certificate or a TokenReview, then by a SubjectAccessReview. Without a hub, a token
//! file and a policy file replace it.
//!
//! [`Auth::build`] makes an [`Authenticator`] and an [`Authorizer`] from a [`Config`]. A
//! [`Permission`] is the only proof that a request was authorized.

mod assembly;
mod authenticate;
mod authorize;
mod ca_bundle;
mod cache;
mod certificate;
mod client_ca;
mod client_certificate;
mod clock;
mod config;
mod config_map;
mod credentials;
#[doc(hidden)]
pub mod edges;
mod front_proxy;
mod identity_headers;
mod impersonation;
mod metrics;
mod peer;
mod review;
mod standalone;
#[cfg(test)]
mod testing;
mod token;
mod token_id;
mod trust;
mod user;

pub use self::assembly::{Auth, BuildError};
pub use self::authenticate::{AuthenticationError, Authenticator, Identity};
pub use self::authorize::{AuthorizationError, Authorizer, PathError, Permission};
pub use self::ca_bundle::CaBundleError;
pub use self::cache::{Cache, Limits as CacheLimits, Loaded};
pub use self::client_ca::ClientCa;
pub use self::config::{AuthorizationConfig, Config, FrontProxyConfig, ReviewConfig, TokenConfig};
pub use self::metrics::Metrics;
pub use self::peer::Peer;
pub use self::review::{AtHubGuard, HubClients, Retry, ReviewError, ReviewProgress, Reviews, TooManyReviews};
pub use self::standalone::PolicyError;
pub use self::token::TokenFileError;
pub use self::user::User;
