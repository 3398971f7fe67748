//! Applies a JSON patch (RFC 6902) within limits: a few lines could otherwise make an object of any
//! size by copies of copies, or one so deep that walking it overflows the stack.
//!
//! kube-apiserver has the same limit in `AccumulatedCopySizeLimit` of its library
//! (`k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).

use std::io;

use json_patch::PatchOperation;
use serde_json::Value;

use super::PatchError;

/// Most bytes of JSON that all copies of one patch may add.
const MOST_COPIED: usize = 64 << 10;
/// Most levels of an object. `serde_json` itself reads at most 128.
const DEEPEST: usize = 100;
/// Most values that all operations of one patch may put in place. Each is walked: moving a large
/// part of an object a thousand times would occupy a core for seconds.
const MOST_BROUGHT: usize = 1 << 20;

/// The number of bytes left.
struct BytesLeft(usize);

/// `object` after all `operations`.
pub fn applied(mut object: Value, operations: &[PatchOperation]) -> Result<Value, PatchError> {
    let (mut room, mut left) = (BytesLeft(MOST_COPIED), MOST_BROUGHT);
    for operation in operations {
        if let Some(value) = brought(operation, &object) {
            if matches!(operation, PatchOperation::Copy(_)) && serde_json::to_writer(&mut room, value).is_err() {
                return Err(PatchError::TooLarge("what the patch copies is larger than 64 KiB"));
            }
            let above = operation.path().count();
            let is_flat = above <= DEEPEST && fits(value, DEEPEST - above, &mut left);
            if left == 0 {
                return Err(PatchError::TooLarge("what the patch brings to its places is more than 1,048,575 values"));
            }
            if !is_flat {
                return Err(PatchError::TooLarge("the patch makes an object of more than 100 levels"));
            }
        }
        json_patch::patch(&mut object, std::slice::from_ref(operation))
            .map_err(|error| PatchError::Inapplicable(error.to_string()))?;
    }
    Ok(object)
}

/// The value that `operation` puts at its path.
fn brought<'a>(operation: &'a PatchOperation, object: &'a Value) -> Option<&'a Value> {
    match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Copy(copy) => object.pointer(copy.from.as_str()),
        PatchOperation::Move(from) => object.pointer(from.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    }
}

/// Whether `value` has at most `levels`. Subtracts its values from `left`, which must stay above 0.
fn fits(value: &Value, levels: usize, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
        && match value {
            Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1, left)),
            Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1, left)),
            _ => true,
        }
}

// === impl BytesLeft ===

impl io::Write for BytesLeft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(operations: &Value) -> Result<Value, PatchError> {
        let operations: Vec<PatchOperation> = serde_json::from_value(operations.clone()).expect("operations");
        applied(json!({"spec": {"a": "b"}, "large": "x".repeat(100 << 10)}), &operations)
    }

    #[test]
    fn copies_do_not_grow_without_end() {
        let double = |turn: u32| json!({"op": "copy", "from": "/spec", "path": format!("/spec/{turn}")});
        let doubled: Vec<_> = (0..60).map(double).collect();
        let refused = patched(&doubled.into());
        assert!(matches!(refused, Err(PatchError::TooLarge(text)) if text.contains("64 KiB")), "{refused:?}");
        // An object that is already large is no problem until it is copied.
        assert!(patched(&json!([double(0), {"op": "move", "from": "/large", "path": "/other"}])).is_ok());
        let large = patched(&json!([{"op": "copy", "from": "/large", "path": "/other"}]));
        assert!(matches!(large, Err(PatchError::TooLarge(_))), "{large:?}");
    }

    #[test]
    fn what_is_large_is_not_moved_without_end() {
        let large = json!({"op": "add", "path": "/a", "value": vec![0; 10_000]});
        let moved = |times: usize| {
            let turn = |turn| {
                let [from, to] = if turn % 2 == 0 { ["/a", "/b"] } else { ["/b", "/a"] };
                json!({"op": "move", "from": from, "path": to})
            };
            patched(&std::iter::once(large.clone()).chain((0..times).map(turn)).collect())
        };
        assert!(moved(100).is_ok());
        let refused = moved(110);
        assert!(matches!(refused, Err(PatchError::TooLarge(text)) if text.contains("values")), "{refused:?}");
    }

    #[test]
    fn objects_do_not_become_deep() {
        let chain = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        let at = |levels: usize| format!("/spec{}", "/a".repeat(levels));
        let add = |levels: usize, path: usize| json!({"op": "add", "path": at(path), "value": chain(levels)});
        assert!(patched(&json!([add(DEEPEST - 2, 1)])).is_ok());
        for operations in [
            json!([add(DEEPEST - 1, 1)]),
            json!([add(60, 1), {"op": "copy", "from": at(1), "path": at(60)}]),
            json!([add(60, 1), {"op": "add", "path": "/other", "value": chain(60)},
                {"op": "move", "from": "/other", "path": at(60)}]),
            json!([add(60, 1), {"op": "replace", "path": at(60), "value": chain(60)}]),
        ] {
            let refused = patched(&operations);
            assert!(matches!(refused, Err(PatchError::TooLarge(text)) if text.contains("levels")), "{refused:?}");
        }
    }

    #[test]
    fn what_cannot_be_applied_says_where() {
        let refused = patched(&json!([{"op": "copy", "from": "/nowhere", "path": "/spec/x"}]));
        assert!(matches!(refused, Err(PatchError::Inapplicable(text)) if text.contains("/spec/x")));
    }
}
