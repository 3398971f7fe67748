//! What programs print, as it is read, for tests on generated output. No interface of the library:
//! it follows the code.

use api::secret::ExecApiVersion;

use crate::redact::Redaction;
use crate::{Credential, ExecError, Request, output};

/// The credential in a standard output.
pub fn credential(stdout: &[u8]) -> Result<Credential, ExecError> {
    output::parse(stdout, ExecApiVersion::V1)
}

/// What is shown of a standard error.
pub fn last_words(request: &Request, stderr: &[u8]) -> String {
    Redaction::of(request).last_words(stderr)
}
