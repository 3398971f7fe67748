//! Forwards a permitted request to its member, and returns the response.

pub mod attempt;
pub mod forward;
pub mod location;
pub mod subpath;
pub mod upgrade;
pub mod workload;

use std::sync::Arc;

use api::route::MemberRequest;
use api::secret::Endpoint;
use auth::Permission;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Body;
use net::drain::Drain;
use traces::Trace;

pub use self::upgrade::UpgradedPair;
use crate::body::{Peeked, ResponseBody};
use crate::clusters::{Cluster, CredentialLease};
use crate::connection::Connection;
use crate::error::{Cause, Error};
use crate::exchange::{ActingAs, NotAHeader};
use crate::headers;
use crate::holding::{self, Account, Tally};
use crate::limits::LoadPermits;
use crate::request_body::RequestBody;

/// A permitted call to one cluster, as both plain requests and upgrades need it.
pub struct Call<'a> {
    pub cluster: Arc<Cluster>,
    /// The request's path up to the member's part.
    pub prefix: &'a str,
    pub asks: &'a MemberRequest<'a>,
    pub permission: Permission,
    pub acting: ActingAs,
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// Counts the member's copies of the caller's identity for the account of the request, and only
    /// while the call lasts: a watch that has begun has none.
    identity: Tally,
    /// The parent of the call's spans, if the request is traced.
    pub trace: Option<&'a Trace>,
}

/// The response to the client.
pub struct Answer {
    pub response: Response<ResponseBody>,
    /// After a 101: the two connections, to be joined.
    pub joined: Option<Box<UpgradedPair>>,
}

/// Makes URI and headers what the member must see, without the credential.
fn to_member(call: &Call<'_>, request: &mut Request<RequestBody>) -> Result<(), Error> {
    *request.uri_mut() = Uri::from(rewrite(call.cluster.endpoint(), request.uri(), call.prefix.len())?);
    headers::to_member(request.headers_mut(), call.connection.address())
        .map_err(|_| Cause::Loop.at(call.cluster.name()))
}

/// The member's URI: `base path + path[remainder..] + ?query`, nothing decoded, cleaned or
/// reordered. An empty remainder becomes `/`.
pub fn rewrite(endpoint: &Endpoint, uri: &Uri, remainder: usize) -> Result<PathAndQuery, Error> {
    let sent = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let path_ends = uri.path().len();
    let rest = &sent[remainder.min(sent.len())..];
    let mut target = BytesMut::with_capacity(endpoint.base_path.len() + 1 + rest.len());
    target.put_slice(endpoint.base_path.as_bytes());
    if remainder >= path_ends {
        target.put_u8(b'/');
    }
    target.put_slice(rest.as_bytes());
    let target: Bytes = target.freeze();
    PathAndQuery::from_maybe_shared(target).map_err(|_| Error::BadRequest("the proxied path is not a valid URL path"))
}

// === impl Answer ===

impl Answer {
    /// All bytes of the body are here, and none has been sent.
    pub fn is_own(&self) -> bool {
        self.joined.is_none() && self.response.body().is_own()
    }
}

impl From<Response<ResponseBody>> for Answer {
    fn from(response: Response<ResponseBody>) -> Self {
        Self { response, joined: None }
    }
}

// === impl Call ===

impl<'a> Call<'a> {
    pub fn new(
        connection: &Arc<Connection>,
        cluster: Arc<Cluster>,
        (prefix, asks): (&'a str, &'a MemberRequest<'a>),
        permission: Permission,
        acting: ActingAs,
        account: &Account,
    ) -> Self {
        Self {
            cluster,
            prefix,
            asks,
            permission,
            acting,
            connection: Arc::clone(connection),
            identity: account.tally(),
            trace: None,
        }
    }

    #[must_use]
    pub fn traced(self, trace: Option<&'a Trace>) -> Self {
        Self { trace, ..self }
    }

    /// Counts what the member learns of the caller, until the call is dropped. Not for the calls of
    /// a read of all clusters, which counts this for all of them.
    #[must_use]
    pub fn counted(mut self) -> Self {
        if self.acting.copies_caller() {
            self.identity.set(holding::identity(self.permission.user()));
        }
        self
    }

    /// Counts the bytes that the request holds.
    pub fn account(&self) -> &Account {
        self.identity.account()
    }

    /// Permits for a request that the member continues after its caller has left.
    pub fn lingers(&self) -> LoadPermits {
        self.connection.gateway().limits.lingers(self.permission.user(), self.cluster.load())
    }

    pub fn drain(&self) -> &Drain {
        &self.connection.gateway().drain
    }

    /// Whether the response shows that the member did not accept the caller's forwarded identity.
    async fn is_disbelieved<B>(&self, response: &mut Response<Peeked<B>>) -> bool
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let tells = matches!(self.acting, ActingAs::FrontProxied) && !self.permission.user().is_anonymous();
        tells && Box::pin(workload::is_anonymous_refusal(response)).await
    }

    /// Sets the cluster's own credential, and the user that it acts as, if [`crate::exchange`]
    /// names one. Authentication has removed the caller's credential, and `headers` has removed its
    /// identity. A cluster that authenticates the gateway by client certificate needs no header.
    fn set_credential(&self, lease: &CredentialLease<'_>, headers: &mut HeaderMap) -> Result<(), Error> {
        self.acting.apply(self.permission.user(), headers).map_err(|NotAHeader| Error::IDENTITY)?;
        if let Some(authorization) = lease.authorization() {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c/proxy";

    fn rewritten(base: &str, rest: &str) -> String {
        let endpoint = Endpoint::parse(&format!("https://member:6443{base}"), false).unwrap();
        let uri: Uri = format!("{PREFIX}{rest}").parse().unwrap();
        rewrite(&endpoint, &uri, PREFIX.len()).unwrap().to_string()
    }

    #[test]
    fn the_empty_remainder_is_the_root() {
        assert_eq!(rewritten("", ""), "/");
        assert_eq!(rewritten("", "?watch=1"), "/?watch=1");
        assert_eq!(rewritten("/base", "?a"), "/base/?a");
        assert_eq!(rewritten("/base/", "/"), "/base/");
    }

    #[test]
    fn bytes_survive() {
        for rest in ["//a", "/a%2Fb", "/a%20b+c", "/a/?b=2&a=1&b=&x;y&z=%20+", "/a/", "/a?", "/%E4?q=%"] {
            assert_eq!(rewritten("", rest), rest);
            assert_eq!(rewritten("/base/x", rest), format!("/base/x{rest}"));
        }
    }

    proptest! {
        #[test]
        fn what_follows_the_prefix_is_what_the_member_sees(rest in "/[!$-;=?-Z_a-z~]{0,40}") {
            prop_assert_eq!(rewritten("", &rest), rest.clone());
            prop_assert_eq!(rewritten("/b", &rest), format!("/b{rest}"));
        }
    }
}
