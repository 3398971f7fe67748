//! Patches of objects by RFC 7396 and RFC 6902: parses and applies them within limits.

mod applied;

use http::StatusCode;
use json_patch::PatchOperation;
use serde_json::Value;

use self::applied::applied;
use crate::status::{Reason, Status};

/// A patch.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// RFC 7396. Strategic merge patches are the same for types with lists that have no merge keys.
    Merge(Value),
    /// RFC 6902.
    Operations(Vec<PatchOperation>),
}

/// Why a patch fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("the patch is not valid: {0}")]
    Invalid(&'static str),
    /// Contains the most that are allowed.
    #[error("the patch is not valid: it has more than {0} operations")]
    TooMany(usize),
    #[error("the patch cannot be applied: {0}")]
    Inapplicable(String),
    /// The result of the patch is too large or too deep.
    #[error("Request entity too large: {0}")]
    TooLarge(&'static str),
}

// === impl Patch ===

impl Patch {
    /// Parses a body of type `application/merge-patch+json`.
    pub fn merge(body: &[u8]) -> Result<Self, PatchError> {
        match serde_json::from_slice(body) {
            Ok(patch @ Value::Object(_)) => Ok(Self::Merge(patch)),
            Ok(_) => Err(PatchError::Invalid("a merge patch must be an object")),
            Err(_) => Err(PatchError::Invalid("it is not JSON")),
        }
    }

    /// Parses a body of type `application/json-patch+json`, with at most `most` operations.
    pub fn operations(body: &[u8], most: usize) -> Result<Self, PatchError> {
        let operations: Vec<PatchOperation> = serde_json::from_slice(body)
            .map_err(|_| PatchError::Invalid("a JSON patch must be an array of operations (RFC 6902)"))?;
        if operations.len() > most { Err(PatchError::TooMany(most)) } else { Ok(Self::Operations(operations)) }
    }

    /// `object` after the patch.
    pub fn patched(&self, mut object: Value) -> Result<Value, PatchError> {
        match self {
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Operations(operations) => object = applied(object, operations)?,
        }
        if object.is_object() { Ok(object) } else { Err(PatchError::Invalid("it leaves no object")) }
    }
}

// === impl PatchError ===

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::RequestEntityTooLarge, message),
            PatchError::Inapplicable(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message),
            PatchError::Invalid(_) | PatchError::TooMany(_) => Self::bad_request(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_few() {
        let of = |count| Value::from(vec![json!({"op": "test", "path": "", "value": 0}); count]).to_string();
        assert!(Patch::operations(of(3).as_bytes(), 3).is_ok());
        let refused = Patch::operations(of(4).as_bytes(), 3).map_err(|error| error.to_string());
        assert_eq!(refused, Err("the patch is not valid: it has more than 3 operations".to_owned()));
    }

    #[test]
    fn what_is_no_object_any_more_is_refused() {
        let replace = Patch::operations(br#"[{"op": "replace", "path": "", "value": 1}]"#, 1).expect("a patch");
        assert_eq!(replace.patched(json!({"a": 1})), Err(PatchError::Invalid("it leaves no object")));
    }
}
