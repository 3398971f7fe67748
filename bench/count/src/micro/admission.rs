//! Authentication and authorization of a request that the caches answer: the hub is not asked.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::access::Attributes;
use api::route::{self, RawRequest};
use auth::{Auth, Config, Metrics, Peer, ReviewError, Reviews};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Uri};
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use kit::pki::{Authority, Leaf};
use prometheus_client::registry::Registry;
use rustls_pki_types::CertificateDer;
use tokio::runtime::Handle;

use super::Operation;
use super::request::{PATH, with_identity, with_token};

const GROUPS: usize = 20;
/// Longer than any bench takes.
const REMEMBERED: Duration = Duration::from_hours(24);

/// Knows every token and allows everything.
struct Generous;

struct Admission {
    auth: Auth,
    peer: Peer,
    head: HeaderMap,
    attributes: Attributes,
}

pub fn token() -> Operation {
    let start = async || Admission::new(Config::default(), Vec::new(), with_token("user-token"));
    Operation::waiting(
        "admit-token",
        "request admitted by its bearer token",
        start,
        async |admission: &mut Admission| admission.admit().await,
    )
}

/// A user with [`GROUPS`] groups, named by the front proxy.
pub fn front_proxy() -> Operation {
    let start = async || {
        let authority = Authority::new("front-proxy-ca");
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        config.front_proxy.ca_file =
            Some(authority.write_to(directory.path(), "front-proxy").expect("a writable directory"));
        let chain = authority.issue(&Leaf::client("front-proxy-client")).chain_der;
        Admission::new(config, chain, with_identity("jane", GROUPS))
    };
    let what = "request admitted by the hub's word, with 20 groups";
    Operation::waiting("admit-front-proxy", what, start, async |admission: &mut Admission| admission.admit().await)
}

// === impl Admission ===

impl Admission {
    fn new(mut config: Config, certificates: Vec<CertificateDer<'static>>, head: HeaderMap) -> Self {
        config.token.cache_ttl = REMEMBERED;
        config.authorization.authorized_ttl = REMEMBERED;
        let metrics = Metrics::register(&mut Registry::default());
        let auth = Auth::with_reviews(&config, Arc::new(Generous), &Handle::current(), &metrics).expect("it is valid");
        let uri: Uri = PATH.parse().expect("a URI");
        let attributes = route::parse(RawRequest::new(&Method::GET, uri.path(), uri.query())).attributes;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4711));
        Self { auth, peer: Peer::new(address, certificates), head, attributes }
    }

    /// Copying the headers and the attributes is in the figure: both are taken apart.
    async fn admit(&self) {
        let mut head = black_box(&self.head).clone();
        let identity = self.auth.authenticator.identify(&self.peer, &mut head).await.expect("known");
        assert_eq!(identity.user.name, "jane");
        let permit = self.auth.authorizer.authorize(identity.user, self.attributes.clone()).await;
        black_box((permit.expect("allowed"), head));
    }
}

// === impl Generous ===

impl Reviews for Generous {
    fn token_review(&self, _: TokenReviewSpec) -> BoxFuture<'_, Result<TokenReviewStatus, ReviewError>> {
        let groups = Some(vec!["system:authenticated".to_owned()]);
        let user = UserInfo { username: Some("jane".to_owned()), groups, ..UserInfo::default() };
        let status = TokenReviewStatus { authenticated: Some(true), user: Some(user), ..TokenReviewStatus::default() };
        async { Ok(status) }.boxed()
    }

    fn subject_access_review(
        &self,
        _: SubjectAccessReviewSpec,
    ) -> BoxFuture<'_, Result<SubjectAccessReviewStatus, ReviewError>> {
        async { Ok(SubjectAccessReviewStatus { allowed: true, ..SubjectAccessReviewStatus::default() }) }.boxed()
    }
}
