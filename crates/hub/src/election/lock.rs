//! Reads and writes the Lease on the hub, one bounded call at a time.

mod record;

use std::fmt;
use std::future::Future;

use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::BoxStream;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::record::text;
use super::identity::Identity;
use super::timing::Timing;
use crate::failure::Cause;

pub(super) use self::record::Record;

/// One Lease, from the view of one contender.
pub(super) struct Lock {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    me: Identity,
    timing: Timing,
}

/// What a Lease said when it was read, and its version then.
pub(super) struct VersionedRecord {
    pub(super) record: Record,
    pub(super) version: String,
}

/// The Lease after each change. `None`: it was deleted.
pub(super) type Changes = BoxStream<'static, Result<Option<VersionedRecord>, Cause>>;

/// A write. Each is atomic on the hub, and its request names its condition.
#[derive(Debug, Clone)]
pub(super) enum Write {
    /// Condition: there is no Lease.
    Create,
    /// Condition: the Lease has this version. Keeps labels, annotations and fields unknown to us.
    Take { version: String, transitions: i32 },
    /// Condition: we hold the Lease. Unlike client-go's renewal, it depends on no version, so that
    /// several may be in flight (see the election module). It writes the duration again, because
    /// the others rely on it and anyone may have changed it.
    Renew,
    /// Condition: we hold the Lease. It then names no holder, for one second: the least valid
    /// duration.
    Release,
}

/// A write that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Setback {
    /// The write's condition is false: nothing was written.
    #[error("{0}")]
    Refused(#[source] Cause),
    /// It is unknown whether the write was carried out.
    #[error("{0}")]
    Failed(#[source] Cause),
}

// === impl Lock ===

impl Lock {
    pub(super) fn new(client: Client, namespace: &str, name: &str, me: Identity, timing: Timing) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, namespace: namespace.to_owned(), name: name.to_owned(), me, timing }
    }

    pub(super) fn me(&self) -> &Identity {
        &self.me
    }

    /// The current Lease. The hub's response is never older than a write that it acknowledged.
    pub(super) async fn look(&self) -> Result<Option<VersionedRecord>, Cause> {
        let Some(lease) = self.bounded(self.leases.get_opt(&self.name)).await? else { return Ok(None) };
        VersionedRecord::read(lease).map(Some)
    }

    /// The changes of the Lease after `version`. The stream ends after some minutes.
    pub(super) async fn follow(&self, version: &str) -> Result<Changes, Cause> {
        let this = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let events = self.bounded(self.leases.watch(&this, version)).await?;
        Ok(events.filter_map(|event| ready(change(event))).boxed())
    }

    /// `now` is for people, and must differ between writes: others detect a renewal by it.
    pub(super) async fn write(&self, write: Write, now: Timestamp) -> Result<(), Setback> {
        let patch = PatchParams::default();
        let written = match &write {
            Write::Create => self.bounded(self.leases.create(&PostParams::default(), &self.lease(now))).await,
            Write::Take { version, transitions } => {
                let taken = Patch::Merge(self.taken(version, *transitions, now));
                self.bounded(self.leases.patch(&self.name, &patch, &taken)).await
            }
            Write::Renew => {
                let lasts = ("leaseDurationSeconds", json!(self.timing.lease_seconds()));
                let renewed = Patch::Json::<()>(self.if_ours([lasts, ("renewTime", text(now))]));
                self.bounded(self.leases.patch(&self.name, &patch, &renewed)).await
            }
            Write::Release => {
                let times = [("acquireTime", text(now)), ("renewTime", text(now))];
                let nobody = [("holderIdentity", json!("")), ("leaseDurationSeconds", json!(1))];
                let released = Patch::Json::<()>(self.if_ours(nobody.into_iter().chain(times)));
                self.bounded(self.leases.patch(&self.name, &patch, &released)).await
            }
        };
        written.map(drop).map_err(|cause| write.setback(cause))
    }

    fn lease(&self, now: Timestamp) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(self.me.as_str().to_owned()),
            lease_duration_seconds: Some(self.timing.lease_seconds()),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(spec) }
    }

    /// A merge patch of exactly `version`: the hub responds with 409 if the Lease has another one.
    fn taken(&self, version: &str, transitions: i32, now: Timestamp) -> Value {
        json!({
            "metadata": {"resourceVersion": version},
            "spec": {
                "holderIdentity": self.me.as_str(),
                "leaseDurationSeconds": self.timing.lease_seconds(),
                "acquireTime": text(now),
                "renewTime": text(now),
                "leaseTransitions": transitions,
            },
        })
    }

    /// A JSON patch that the hub applies if we are the holder. Otherwise it responds with 422.
    fn if_ours(&self, fields: impl IntoIterator<Item = (&'static str, Value)>) -> json_patch::Patch {
        let path = |field| PointerBuf::from_tokens(["spec", field]);
        let ours = TestOperation { path: path("holderIdentity"), value: json!(self.me.as_str()) };
        let set = |(field, value)| PatchOperation::Add(AddOperation { path: path(field), value });
        json_patch::Patch(std::iter::once(PatchOperation::Test(ours)).chain(fields.into_iter().map(set)).collect())
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Cause> {
        let within = self.timing.renew();
        timeout(within, call).await.map_err(|_| Cause::Timeout(within))?.map_err(Cause::from)
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl VersionedRecord ===

impl VersionedRecord {
    fn read(lease: Lease) -> Result<Self, Cause> {
        let version = lease.metadata.resource_version.ok_or(Cause::Unreadable)?;
        Ok(Self { record: lease.spec.map(Record::from).unwrap_or_default(), version })
    }
}

// === impl Write ===

impl Write {
    /// Interprets a failure: the same status code means different things for different writes.
    fn setback(&self, cause: Cause) -> Setback {
        let code = cause.code();
        let refused = match self {
            Self::Create => code == Some(409),
            Self::Take { .. } => matches!(code, Some(404 | 409)),
            // A 409 here is a conflict inside the hub, after several tries: it applies the patch
            // again to the current object (`patchResource` of k8s.io/apiserver).
            Self::Renew | Self::Release => matches!(code, Some(404 | 422)),
        };
        if refused { Setback::Refused(cause) } else { Setback::Failed(cause) }
    }
}

fn change(event: Result<WatchEvent<Lease>, Error>) -> Option<Result<Option<VersionedRecord>, Cause>> {
    match event {
        Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => Some(VersionedRecord::read(lease).map(Some)),
        Ok(WatchEvent::Deleted(_)) => Some(Ok(None)),
        Ok(WatchEvent::Bookmark(_)) => None,
        Ok(WatchEvent::Error(status)) => Some(Err(Cause::from(Error::Api(status.boxed())))),
        Err(error) => Some(Err(Cause::from(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_also_where_these_are_zero() {
        let time = Timestamp::from_microsecond(1_500_000).expect("a time");
        assert_eq!(text(time), "1970-01-01T00:00:01.500000Z");
    }
}
