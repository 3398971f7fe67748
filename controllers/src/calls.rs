//! What calls to hubs and members have in common: their parameters, and how answers are read.

use kube::api::{DeleteParams, DynamicObject, PatchParams, PostParams, Preconditions};
use serde_json::Value;

/// Whose the fields are that this program writes.
pub use register::claims::FIELD_MANAGER as MANAGER;

pub const NOT_FOUND: u16 = 404;
pub const CONFLICT: u16 = 409;

pub fn creating() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// For merge patches.
pub fn merging() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Deletes the object that was judged and no later one of its name; with `version`, only while
/// nobody has changed it.
pub fn deleting(uid: &str, version: Option<&str>) -> DeleteParams {
    let (uid, resource_version) = (Some(uid.to_owned()), version.map(str::to_owned));
    DeleteParams { preconditions: Some(Preconditions { uid, resource_version }), ..DeleteParams::default() }
}

/// Whether the answer is a Status of this code.
pub fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Whether an object was not created because another one has its name. Quotas that are written at
/// the same time answer the same code.
pub fn is_taken(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == CONFLICT && status.reason == "AlreadyExists")
}

/// An object as JSON, for those who read or decide.
pub fn value(object: &DynamicObject) -> Value {
    // An object that came as JSON is JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// The time now as `metav1.Time` is written.
pub fn now_text() -> String {
    api::time::now()
}
