use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use api::access::Verb;
use auth::User;
use exec_credential::ExecError;
use http_body_util::BodyExt;
use net::words::Causes;
use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::clusters::NotIssued;
use crate::headers::size::Unfit;
use crate::hub::{self, Collection};
use crate::limits::{HeavyPermits, Kind, Whose};
use crate::upstream::{ConnectError, SendError};

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

fn not_issued() -> NotIssued {
    NotIssued::Plugin(Arc::new(ExecError::NotFound { command: "aws".into(), hint: String::new() }))
}

fn of_hub(verb: Verb, cause: hub::Cause) -> Error {
    Error::hub(HubFailure { verb, collection: Collection::Secrets, cause }, "clustergateways")
}

fn too_many_heavy() -> Error {
    let permits = HeavyPermits::new("feasts", 0, 1, [Counter::default(), Counter::default()]);
    permits.enter(&User::default()).expect_err("full").into()
}

pub(super) fn every_kind() -> Vec<Error> {
    let upstream = |error| Cause::Send(error).at(&name());
    vec![
        Error::Authentication(AuthenticationError::Unauthorized { why: "secret detail".into() }),
        Error::Authorization(AuthorizationError::Review(auth::ReviewError::TimedOut)),
        Error::Authentication(AuthenticationError::Busy(TooManyReviews::OfAll)),
        Error::Authorization(AuthorizationError::Busy(TooManyReviews::OfOne { owner: "a".into(), most: 1024 })),
        Error::TooMany(TooMany { whose: Whose::Cluster(name()), kind: Kind::Long, most: 20_000 }),
        Error::TooMany(TooMany { whose: Whose::KarmadaUpstream, kind: Kind::Short, most: 4000 }),
        Error::TooMany(TooMany { whose: Whose::User(Arc::default()), kind: Kind::Short, most: 2000 }),
        Error::BadRequest("Upgrade request required"),
        Error::BadPath(BadPath::DotSegment),
        Error::UnfitHead(Unfit::LongName),
        Error::UnfitHead(Unfit::NoName),
        Error::UnfitHead(Unfit::LongPath),
        Error::HeldTooMuch,
        Error::NotFound,
        Error::MethodNotAllowed,
        Error::NotAcceptable,
        Error::NoSuchObject(name()),
        Cause::Absent.at(&name()),
        Error::ClustersUnknown,
        Cause::Late.at(&name()),
        Cause::Unanswered.at(&name()),
        Cause::Invalid("data key \"token\" is missing".into()).at(&name()),
        upstream(SendError::Connect(refused())),
        upstream(SendError::Connect(timed_out())),
        upstream(SendError::Exhausted(256)),
        upstream(SendError::Refused),
        upstream(SendError::Broken("connection reset by peer".into())),
        upstream(SendError::Shed),
        upstream(SendError::Unfit(Unfit::TooLarge)),
        upstream(SendError::Unfit(Unfit::Name)),
        upstream(SendError::UnfitAnswer(Unfit::TooLarge)),
        Cause::UpgradeBroken("connection closed".into()).at(&name()),
        Cause::NoUpgrade(StatusCode::FOUND).at(&name()),
        Cause::Unexpected(StatusCode::SWITCHING_PROTOCOLS).at(&name()),
        Cause::CredentialRejected.at(&name()),
        Cause::IssuedRejected.at(&name()),
        Cause::NotIssued(not_issued()).at(&name()),
        Cause::Redirected.at(&name()),
        Cause::Loop.at(&name()),
        upstream(SendError::Connect(refused())).of_karmada_upstream("https://10.0.0.9:5443"),
        Cause::CredentialRejected.at(&name()).of_karmada_upstream("https://10.0.0.9:5443"),
        Cause::Loop.at(&name()).of_karmada_upstream("https://10.0.0.9:5443"),
        of_hub(Verb::List, hub::Cause::Busy),
        of_hub(Verb::Watch, hub::Cause::Unreachable(Causes::of("connection refused"))),
        of_hub(Verb::Update, hub::Cause::Unreachable(Causes::of("connection refused"))),
        of_hub(Verb::Get, hub::Cause::Timeout(Duration::from_mins(1))),
        of_hub(Verb::Update, hub::Cause::Busy),
        too_many_heavy(),
        EveryFailure::LateReviews(60).into(),
        EveryFailure::NoneServed { side: Side::Member, text: "no cluster served this request; missing: a".into() }
            .into(),
        EveryFailure::NoneServed { side: Side::Tunnel, text: "not found in the clusters".into() }.into(),
        Error::Unusable("secret vela-system/berlin: the hub's JSON cannot be read".into()),
        Error::LateWrite(60),
        Error::of_caller(Status::object_not_found("clusters", "berlin")),
    ]
}

#[tokio::test]
async fn the_text_of_every_error() {
    insta::assert_snapshot!(render(every_kind()).await);
}

async fn render(errors: impl IntoIterator<Item = Error>) -> String {
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
    let errors = through_the_tunnel().map(|error| Cause::Send(SendError::Connect(error)).at(&name()));
    insta::assert_snapshot!(render(errors).await);
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
        let status = Cause::Send(SendError::Connect(error)).at(&name()).into_status();
        assert!(String::from_utf8_lossy(&status.to_json()).contains("dial tcp"), "{status:?}");
    }
}
