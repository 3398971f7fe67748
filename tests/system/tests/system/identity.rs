//! Callers' identities over the wire: what proves an identity, what proves nothing, and what
//! callers without a proof learn.

mod crowds;
mod debugging;
mod exchange;
mod flags;
mod front_proxy;
mod impersonation;
mod passing;
mod readiness;
mod reading;
mod serving;
mod strangers;
mod subpath;
mod trailers;

use kit::member::Recorded;
use kit::pki::Issued;
use system_tests::prelude::*;

/// A path of the member.
const PATH: &str = "/api/v1/namespaces/ns/pods/p";

/// A hub, a member registered there, and the gateway of both.
struct Fixture {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
}

// === impl Fixture ===

impl Fixture {
    /// Every user is denied everything yet.
    async fn set() -> Self {
        Self::with(Http::H2, &[]).await
    }

    /// As [`Fixture::set`], with a member that speaks `http` at best and further arguments of the
    /// gateway.
    async fn with(http: Http, arguments: &[&str]) -> Self {
        let (hub, member) = (FakeHub::start().await, http.member().await);
        member.on_any(|_| Reply::full(200, &[], "from the member"));
        hub.put_secret(cluster(CLUSTER, &member));
        let builder = Testbed::builder().hub(&hub);
        let testbed = arguments.iter().fold(builder, |builder, argument| builder.arg(argument)).start().await;
        Self { hub, member, testbed }
    }

    /// A connection that presents a certificate, or none.
    async fn connect(&self, http: Http, identity: Option<&Issued>) -> Connection {
        let client = identity.map_or_else(|| self.testbed.client(), |identity| self.testbed.client_with(identity));
        http.connect(&client).await.expect("the gateway accepts connections")
    }

    /// A connection of the hub's aggregator.
    async fn front_proxy(&self, http: Http) -> Connection {
        self.connect(http, Some(&self.hub.front_proxy_identity())).await
    }

    /// The `spec` of the latest access review.
    fn reviewed(&self) -> Value {
        self.hub.access_reviews().pop().expect("somebody was reviewed")
    }
}

/// The identity as which the member was asked to act: the lines of its `Impersonate-*` headers.
fn acted_as(request: &Recorded) -> Vec<(String, String)> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        let name = name.as_str().strip_prefix("impersonate-")?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    };
    request.headers.iter().filter_map(line).collect()
}

/// Lines as [`acted_as`] has them.
fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The gateway's path to [`PATH`].
fn target() -> String {
    proxied(CLUSTER, PATH)
}
