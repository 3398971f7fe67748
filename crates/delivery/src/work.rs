//! Open Cluster Management's objects (`work.open-cluster-management.io`): their content, in terms
//! of the machinery, which knows nothing of them; and their statuses.

mod aggregate;
mod applied;
mod bound;
mod conditions;
mod index;
mod options;
pub mod replica_set;
mod spec;
mod status;

pub use self::aggregate::{
    aggregate, default_progressing, has_progressing_rule, is_made, prune, prune_others, set_default_progressing,
    take_default_progressing,
};
pub use self::applied::{
    APPLIED_FINALIZER, AppliedManifestWork, AppliedSpec, AppliedStatus, InvalidName, applied_name, applied_object,
    hub_hash, sorted,
};
pub use self::bound::{BytesLeft, TOLD};
pub use self::conditions::{
    Availability, Failed, all_applied, applied, available, deleting, feedback, is_complete, synced, was_applied,
};
pub use self::index::{Index, merged};
pub use self::options::{Options, end, is_owned, options};
pub use self::spec::{
    ConditionRule, DeleteOption, FeedbackRule, IgnoreField, InvalidSpec, JsonPath, ManifestConfig,
    ManifestWorkExecutor, ManifestWorkSpec, ManifestsTemplate, SelectivelyOrphan, ServerSideApply, ServiceAccount,
    Subject, UpdateStrategy,
};
pub use self::status::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestWorkStatus, ResourceMeta, ResourceStatus, StatusFeedback,
};

/// API group of everything here.
pub const GROUP: &str = "work.open-cluster-management.io";

/// Types of conditions.
pub mod kind {
    pub const APPLIED: &str = "Applied";
    pub const AVAILABLE: &str = "Available";
    pub const PROGRESSING: &str = "Progressing";
    pub const DEGRADED: &str = "Degraded";
    pub const COMPLETE: &str = "Complete";
    pub const DELETING: &str = "Deleting";
    pub const FEEDBACK: &str = "StatusFeedbackSynced";
    /// Types that no rule sets. A rule may set `Available`, as upstream's may: it then says what
    /// being available means for an object.
    pub const OURS: [&str; 3] = [APPLIED, DELETING, FEEDBACK];
}

#[cfg(test)]
mod tests;
