//! Functions that read the output of programs, for tests with generated output. Not a stable
//! interface: it changes with the code.

use api::secret::ExecApiVersion;

use crate::redact::Redaction;
use crate::{Credential, ExecError, Request, output};

/// The credential in a standard output.
pub fn credential(stdout: &[u8]) -> Result<Credential, ExecError> {
    output::parse(stdout, ExecApiVersion::V1)
}

/// The part of a standard error that is shown.
pub fn last_words(request: &Request, stderr: &[u8]) -> String {
    Redaction::of(request).last_words(stderr)
}
