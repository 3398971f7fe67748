//! Shared by this crate's tests: a scripted hub, certificates, and headers in one line.

pub(crate) mod https;
mod hub;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use k8s_openapi::api::authentication::v1::{TokenReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewStatus;
use kit::pki::Authority;
use prometheus_client::registry::Registry;
use rustls_pki_types::CertificateDer;
use tokio::runtime::Handle;

use crate::ca_bundle::CaBundle;
use crate::identity_headers::IdentityHeaders;
use crate::trust::FrontProxySettings;
use crate::{Auth, Config, Metrics, Peer, Reviews, User};

pub(crate) use self::hub::ScriptedHub;

pub(crate) fn denied() -> SubjectAccessReviewStatus {
    SubjectAccessReviewStatus { reason: Some("no RBAC policy matched".to_owned()), ..Default::default() }
}

/// `authenticated: true` for `name` in `groups`.
pub(crate) fn authenticated(name: &str, groups: &[&str]) -> TokenReviewStatus {
    TokenReviewStatus {
        authenticated: Some(true),
        user: Some(UserInfo { username: Some(name.to_owned()), groups: Some(strings(groups)), ..UserInfo::default() }),
        ..TokenReviewStatus::default()
    }
}

pub(crate) fn metrics() -> Metrics {
    Metrics::register(&mut Registry::default())
}

/// The default configuration with reviews by `hub`.
pub(crate) fn auth(hub: &Arc<ScriptedHub>) -> Auth {
    auth_with(hub, &Config::default())
}

pub(crate) fn auth_with(hub: &Arc<ScriptedHub>, config: &Config) -> Auth {
    let reviews: Arc<dyn Reviews> = Arc::<ScriptedHub>::clone(hub);
    Auth::with_reviews(config, reviews, &Handle::current(), &metrics()).expect("the configuration is valid")
}

pub(crate) fn bundle(authority: &Authority) -> Arc<CaBundle> {
    Arc::new(CaBundle::parse(authority.certificate_pem().as_bytes()).expect("a valid authority"))
}

/// The settings of a usual hub, including the UID header.
pub(crate) fn front_proxy(authority: &Authority, allowed_names: &[&str]) -> FrontProxySettings {
    FrontProxySettings {
        authorities: bundle(authority),
        allowed_names: strings(allowed_names),
        headers: IdentityHeaders::new(
            &strings(&["X-Remote-User"]),
            &strings(&["X-Remote-Uid"]),
            &strings(&["X-Remote-Group"]),
            &strings(&["X-Remote-Extra-"]),
        ),
    }
}

pub(crate) fn peer(certificates: &[CertificateDer<'static>]) -> Peer {
    Peer::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 4711)), certificates.to_vec())
}

/// Values are UTF-8. Repeated names become repeated lines.
pub(crate) fn headers<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().expect("a header name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
    }
    headers
}

pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.to_owned(), groups: strings(groups), ..User::default() }
}

pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
