//! The label that tells in which spelling a member was asked for.

use std::fmt;

use api::route::Dialect;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

/// `dialect`, and nothing for the native one: the series that were there before there were others
/// are the same still.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct DialectLabel(pub Dialect);

impl EncodeLabelSet for DialectLabel {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.word().map_or(Ok(()), |word| ("dialect", word).encode(encoder.encode_label()))
    }
}
