//! A part that stands in for upstream's controller of the same objects: it stands by while that one
//! runs, unless a flag forbids it.

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;

use super::Context;
use super::rivals::{self, Rival, Rivals, Sought};
use crate::args::PartName;
use crate::events::Reason;

pub struct StandIn {
    pub part: PartName,
    pub rival: Rival,
    /// The controller that it stands in for, in texts: `scheduler of Placements`.
    pub role: &'static str,
    /// What is logged when it begins.
    pub begins: &'static str,
    /// Whether `--never-stand-by` may name it.
    pub may_run_beside: bool,
}

// === impl StandIn ===

impl StandIn {
    /// Does `work` whenever this part is to, in a term that begins when it may write. Never ends.
    pub async fn run<'a, W: Future<Output = ()>>(&self, context: &Context<'a>, work: impl Fn(Context<'a>) -> W) {
        if context.config.never_stand_by.contains(&self.part) {
            context.metrics.stands_by(self.part.as_str(), false);
            return work(context.clone()).await;
        }
        // An Event is a write: what was seen before this replica leads is recorded when it does.
        let unsaid = Mutex::new(None);
        let tell = || {
            let rivals = unsaid.lock().take();
            if let Some(rivals) = rivals {
                self.report(context, &rivals);
            }
        };
        let report = |rivals: &Rivals| {
            *unsaid.lock() = Some(rivals.clone());
            if context.term.has_begun() {
                tell();
            }
        };
        let told = async {
            context.term.begins().await;
            tell();
        };
        let work = |term| work(Context { term, ..context.clone() });
        let sought = Sought { rival: &self.rival, namespaces: &context.config.rival_namespaces };
        let own = (&context.readiness, &context.term);
        tokio::join!(rivals::while_alone(&context.hub, sought, own, report, work), told);
    }

    fn report(&self, context: &Context<'_>, rivals: &Rivals) {
        let (part, lease) = (self.part.as_str(), self.rival.lease);
        context.metrics.stands_by(part, *rivals != Rivals::None);
        match rivals {
            Rivals::Unknown => {}
            Rivals::None => tracing::info!("{}", self.begins),
            Rivals::Alive { namespace, holder } => {
                let flag = if self.may_run_beside {
                    format!(", set --never-stand-by={part}, or name the namespaces that count with --rival-namespaces")
                } else {
                    String::new()
                };
                let note = format!(
                    "another {} runs ({holder}): {part} stands by, everywhere, until Lease {namespace}/{lease} ends. \
                     Stop that one, disable this part{flag}. Any user that may write Leases in that namespace can \
                     cause this",
                    self.role
                );
                tracing::warn!(namespace, lease, note);
                let lease = ObjectReference {
                    api_version: Some("coordination.k8s.io/v1".to_owned()),
                    kind: Some("Lease".to_owned()),
                    namespace: Some(namespace.clone()),
                    name: Some(lease.to_owned()),
                    ..ObjectReference::default()
                };
                context.events.publish(lease, Reason::StandingBy, note);
            }
        }
    }
}
