//! The audit log: the user, the request, its time and origin, and its outcome.
//!
//! Events are `audit.k8s.io/v1` at level Metadata, one JSON object per line, as kube-apiserver's
//! log backend writes them (`k8s.io/apiserver/pkg/apis/audit/v1`, `plugin/pkg/audit/log`). They
//! contain no bodies, no tokens and no credentials.
//!
//! A request passes its [`Event`] to a [`Sink`] without waiting. One thread writes the events.
//! Events that it cannot keep up with are dropped and counted. [`Log`] owns that thread and the
//! file.

mod event;
mod id;
mod log;
mod origin;
mod timestamp;
mod uri;

pub use self::event::{Decision, Event, ObjectRef, Stage};
pub use self::id::{AUDIT_ID, AuditId};
pub use self::log::{Config, FileConfig, Log, Metrics, OpenError, Sink, Target};
pub use self::origin::{source_ips, user_agent};
pub use self::uri::{Query, redacted};
