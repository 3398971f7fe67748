//! Golden bytes, and a separate reader that decodes every field again.

use std::collections::BTreeMap;

use http::StatusCode;

use super::{MAGIC, encoded};
use crate::status::{Details, Reason, Status, StatusCause};

/// Values of a message by field number, in order: the bytes of a length-delimited one, or a number.
#[derive(Debug, Default)]
struct Fields {
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
    numbers: BTreeMap<u64, u64>,
}

// === impl Fields ===

impl Fields {
    fn read(mut from: &[u8]) -> Self {
        let mut fields = Self::default();
        while !from.is_empty() {
            let tag = varint(&mut from);
            let (field, wire_type) = (tag >> 3, tag % 8);
            if wire_type == 0 {
                fields.numbers.insert(field, varint(&mut from));
                continue;
            }
            assert_eq!(wire_type, 2, "no other wire type is used");
            let length = usize::try_from(varint(&mut from)).expect("a length");
            let (value, rest) = from.split_at(length);
            fields.bytes.entry(field).or_default().push(value.to_vec());
            from = rest;
        }
        fields
    }

    fn message(&self, field: u64) -> Self {
        Self::read(&self.bytes[&field][0])
    }

    fn text(&self, field: u64) -> &str {
        self.bytes.get(&field).map_or("", |values| std::str::from_utf8(&values[0]).expect("UTF-8"))
    }
}

fn varint(from: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = from.split_first().expect("a varint ends before the message does");
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn with_every_field() -> Status {
    let cause = |field: &'static str| StatusCause {
        reason: "FieldValueInvalid".into(),
        message: "bad".into(),
        field: field.into(),
    };
    let long = "m".repeat(300);
    Status::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, long).with_details(Details {
        name: "c1".into(),
        group: "g".into(),
        kind: "clustergateways".into(),
        uid: "7".into(),
        causes: vec![cause("spec.a"), cause("spec.b")],
        retry_after_seconds: 200,
    })
}

#[test]
fn every_field_is_read_back() {
    let bytes = encoded(&with_every_field());
    let envelope = Fields::read(bytes.strip_prefix(MAGIC).expect("the magic bytes come first"));
    let kind = envelope.message(1);
    assert_eq!((kind.text(1), kind.text(2)), ("v1", "Status"));
    let status = envelope.message(2);
    assert_eq!((status.text(2), status.text(3), status.text(4)), ("Failure", &*"m".repeat(300), "Invalid"));
    assert_eq!(status.numbers[&6], 422);
    let details = status.message(5);
    assert_eq!(
        (details.text(1), details.text(2), details.text(3), details.text(6)),
        ("c1", "g", "clustergateways", "7")
    );
    assert_eq!(details.numbers[&5], 200);
    let causes: Vec<_> = details.bytes[&4].iter().map(|cause| Fields::read(cause)).collect();
    let causes: Vec<_> = causes.iter().map(|cause| (cause.text(1), cause.text(2), cause.text(3))).collect();
    assert_eq!(causes, [("FieldValueInvalid", "bad", "spec.a"), ("FieldValueInvalid", "bad", "spec.b")]);
}

#[test]
fn golden_bytes() {
    let hex = |status: &Status| format!("{:02x?}", &encoded(status)[..]);
    let statuses = [
        Status::object_not_found("clustergateways", "c1"),
        with_every_field(),
        Status::new(StatusCode::BAD_GATEWAY, Reason::Unknown, "é"),
    ];
    insta::assert_snapshot!(statuses.iter().map(hex).collect::<Vec<_>>().join("\n"));
}
