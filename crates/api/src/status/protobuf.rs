//! Encodes a Status as protobuf, for clients that read nothing else.
//!
//! Field numbers are those of `k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto`. The message
//! is inside the envelope `runtime.Unknown` of `pkg/runtime/generated.proto`, after four magic
//! bytes. Empty fields are omitted, which means the same to every reader. The encoder is written by
//! hand, because a code generator for one message would be larger than this code.

use bytes::Bytes;

use super::{Details, Status, StatusCause};

/// Kubernetes' media type for protobuf.
pub(super) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The bytes before every envelope. The last one is the encoding.
const MAGIC: &[u8; 4] = b"k8s\0";

pub(super) fn encoded(status: &Status) -> Bytes {
    let mut type_meta = Message::default();
    type_meta.text(1, status.api_version);
    type_meta.text(2, status.kind);
    let mut envelope = Message(MAGIC.to_vec());
    envelope.bytes(1, &type_meta.0);
    envelope.bytes(2, &message(status).0);
    Bytes::from(envelope.0)
}

fn message(status: &Status) -> Message {
    let mut message = Message::default();
    // `metadata` is present even without content.
    message.bytes(1, &[]);
    message.text(2, status.status);
    message.text(3, &status.message);
    message.text(4, status.reason.as_str());
    if let Some(details) = status.details() {
        message.bytes(5, &details_message(details).0);
    }
    message.number(6, status.code.as_u16().into());
    message
}

fn details_message(details: &Details) -> Message {
    let mut message = Message::default();
    message.text(1, &details.name);
    message.text(2, &details.group);
    message.text(3, &details.kind);
    for cause in &details.causes {
        message.bytes(4, &cause_message(cause).0);
    }
    message.number(5, details.retry_after_seconds);
    message.text(6, &details.uid);
    message
}

fn cause_message(cause: &StatusCause) -> Message {
    let mut message = Message::default();
    message.text(1, &cause.reason);
    message.text(2, &cause.message);
    message.text(3, &cause.field);
    message
}

/// The wire format: a tag (field number and wire type) before each value.
#[derive(Default)]
struct Message(Vec<u8>);

// === impl Message ===

impl Message {
    const VARINT: u32 = 0;
    const LENGTH_DELIMITED: u32 = 2;

    /// Omits an empty text.
    fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | Self::LENGTH_DELIMITED));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Omits zero.
    fn number(&mut self, field: u32, number: u32) {
        if number != 0 {
            self.varint(u64::from(field << 3 | Self::VARINT));
            self.varint(number.into());
        }
    }

    /// Seven bits per byte, the lowest first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests;
