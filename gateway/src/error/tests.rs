use std::fmt::Write;

use http_body_util::BodyExt;

use super::*;
use crate::headers::size::Unfit;
use crate::hub::{Cause, Collection, Verb};
use crate::limits::{Kind, Whose};

fn name() -> ClusterName {
    ClusterName::parse("berlin").unwrap()
}

fn refused() -> Arc<ConnectError> {
    Arc::new(ConnectError::Dial(net::dial::DialError::Connect {
        address: "10.0.0.7:6443".into(),
        source: std::io::Error::from_raw_os_error(111),
    }))
}

fn timed_out() -> Arc<ConnectError> {
    Arc::new(ConnectError::Dial(net::dial::DialError::Timeout { address: "10.0.0.7:6443".into() }))
}

pub(super) fn through_the_tunnel() -> impl Iterator<Item = Arc<ConnectError>> {
    let address = || "kubernetes.default.svc:443 through the tunnel".to_owned();
    let every = crate::tunnel::error::tests::every_kind().into_iter();
    every.map(move |source| Arc::new(ConnectError::Tunnel { address: address(), source }))
}

fn of_hub(verb: Verb, cause: Cause) -> Error {
    Error::hub(HubFailure { verb, collection: Collection::Secrets, cause }, "clustergateways")
}

pub(super) fn every_kind() -> Vec<Error> {
    let upstream = |error| Error::Upstream { cluster: name(), error };
    vec![
        Error::Authentication(AuthenticationError::Unauthorized { why: "secret detail".into() }),
        Error::Authorization(AuthorizationError::Review("the hub did not answer the access review".into())),
        Error::Authentication(AuthenticationError::Busy),
        Error::Authorization(AuthorizationError::Busy),
        Error::TooMany(TooMany { whose: Whose::Cluster(name()), kind: Kind::Long, most: 20_000 }),
        Error::TooMany(TooMany { whose: Whose::User(Arc::default()), kind: Kind::Short, most: 2000 }),
        Error::BadRequest("Upgrade request required"),
        Error::BadPath(BadPath::DotSegment),
        Error::NotFound,
        Error::MethodNotAllowed,
        Error::NotAcceptable,
        Error::NoSuchObject(name()),
        Error::NoSuchCluster(name()),
        Error::ClustersUnknown,
        Error::ClusterLate(name()),
        Error::ClusterUnanswered(name()),
        Error::InvalidCluster { cluster: name(), reason: "data key \"token\" is missing".into() },
        upstream(SendError::Connect(refused())),
        upstream(SendError::Connect(timed_out())),
        upstream(SendError::Exhausted(256)),
        upstream(SendError::Refused),
        upstream(SendError::Broken("connection reset by peer".into())),
        upstream(SendError::Unfit(Unfit::TooLarge)),
        upstream(SendError::Unfit(Unfit::Name)),
        upstream(SendError::UnfitAnswer(Unfit::TooLarge)),
        Error::UpgradeBroken { cluster: name(), reason: "connection closed".into() },
        Error::NoUpgrade { cluster: name(), status: StatusCode::FOUND },
        Error::Unasked { cluster: name(), status: StatusCode::SWITCHING_PROTOCOLS },
        Error::CredentialRejected(name()),
        Error::IssuedRejected(name()),
        Error::NotIssued { cluster: name(), reason: "exec: executable aws not found".into() },
        Error::Redirected(name()),
        Error::Loop(name()),
        of_hub(Verb::List, Cause::Busy),
        of_hub(Verb::Watch, Cause::Unreachable("connection refused".into())),
        of_hub(Verb::Update, Cause::Unreachable("connection refused".into())),
        of_hub(Verb::Get, Cause::Timeout),
        Error::Status(Box::new(of_hub(Verb::Update, Cause::Busy).into_status())),
    ]
}

#[tokio::test]
async fn the_text_of_every_error() {
    insta::assert_snapshot!(told(every_kind()).await);
}

async fn told(errors: impl IntoIterator<Item = Error>) -> String {
    let mut all = String::new();
    for error in errors {
        let response = error.into_response();
        let retry = response.headers().get(RETRY_AFTER).map_or("", |_| " Retry-After");
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        writeln!(all, "{status}{retry}\n{}\n", String::from_utf8_lossy(&body)).unwrap();
    }
    all
}

#[tokio::test]
async fn the_text_of_every_error_of_the_tunnel() {
    let errors =
        through_the_tunnel().map(|error| Error::Upstream { cluster: name(), error: SendError::Connect(error) });
    insta::assert_snapshot!(told(errors).await);
}

#[test]
fn nothing_that_may_have_reached_a_member_invites_a_repetition() {
    for error in every_kind() {
        let text = format!("{error:?}");
        if text.contains("Broken") || text.contains("Rejected") || text.contains("Redirected") {
            assert!(error.into_response().headers().get(RETRY_AFTER).is_none(), "{text}");
        }
    }
}

#[test]
fn unreachable_members_are_known_by_their_text() {
    for error in [refused(), timed_out()] {
        let status = Error::Upstream { cluster: name(), error: SendError::Connect(error) }.into_status();
        assert!(String::from_utf8_lossy(&status.to_json()).contains("dial tcp"), "{status:?}");
    }
}
