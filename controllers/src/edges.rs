//! What `tests/edges` feeds with any bytes.

pub use crate::raw::{Bounded, CONTENTS, HEAVIEST, HEAVIEST_FIELD, HEAVIEST_METADATA, Meta, RawObject, weight};
